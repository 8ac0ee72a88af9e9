#include "layers/linear/linear_products.h"

#include "core/check.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/linear/bf16_products.h"
#include "layers/linear/f32_products.h"

namespace ringtail {

std::unique_ptr<LinearProducts> LinearProducts::Create(const LinearSizes& sizes, BlobType rows,
                                                       BlobType operands) {
  const Bf16Unit unit = FastBf16Unit();
  if (operands == BlobType::kBf16 && unit != Bf16Unit::kNone) {
    return std::make_unique<Bf16LinearProducts>(sizes, rows, unit);
  }
  RT_CHECK(rows == BlobType::kF32, "products of f32 operands read f32 rows");
  return std::make_unique<F32LinearProducts>(sizes);
}

}  // namespace ringtail
