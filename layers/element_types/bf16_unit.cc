#include "layers/element_types/bf16_unit.h"

#include "core/check.h"
#include "core/fast_bf16_products.h"
#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/kernels/bf16/bf16_dot_tiles.h"

namespace ringtail {

Bf16UnitKernels KernelsOf(Bf16Unit unit) {
  if (unit == Bf16Unit::kTiles) {
    return {RT_KERNEL(BeginBf16Tiles), RT_KERNEL(EndBf16Tiles), RT_KERNEL(MultiplyBf16Tiles),
            RT_KERNEL(MultiplyBf16TileGradient)};
  }
  RT_CHECK(unit == Bf16Unit::kPairs, "no unit has no kernels");
  constexpr auto kNothing = [] {};
  return {kNothing, kNothing, RT_KERNEL(MultiplyBf16DotTiles), RT_KERNEL(MultiplyBf16DotGradient)};
}

Bf16Unit BestBf16Unit() {
  if (HasBf16Tiles()) return Bf16Unit::kTiles;
  return RT_KERNEL(HasBf16Products)() ? Bf16Unit::kPairs : Bf16Unit::kNone;
}

Bf16Unit FastBf16Unit() {
  const Bf16Unit best = BestBf16Unit();
  if (best != Bf16Unit::kPairs) return best;
  return FastBf16Products() ? best : Bf16Unit::kNone;
}

}  // namespace ringtail
