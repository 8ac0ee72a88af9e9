#include "layers/element_types/widen.h"

#include "core/check.h"
#include "core/kernels/add.h"
#include "core/kernels/bfloat16.h"
#include "layers/element_types/blob_elements.h"
#include "layers/parallel_blobs.h"

namespace ringtail {

void WidenBlob(const BlobDesc& desc, const float* bf16, float* f32) {
  RT_CHECK(desc.type == BlobType::kBf16, "an f32 blob is as wide as it can be");
  const auto kernel = RT_KERNEL(WidenBfloat16);
  const auto* narrow = ElementsOf<Bfloat16>(bf16);
  ForEachElementRange(
      desc, [&](int64_t begin, int64_t end) { kernel(narrow + begin, end - begin, f32 + begin); });
}

void NarrowBlob(const BlobDesc& desc, const float* f32, float* bf16) {
  RT_CHECK(desc.type == BlobType::kBf16, "an f32 blob is not rounded");
  const auto kernel = RT_KERNEL(NarrowToBfloat16);
  auto* narrow = ElementsOf<Bfloat16>(bf16);
  ForEachElementRange(
      desc, [&](int64_t begin, int64_t end) { kernel(f32 + begin, end - begin, narrow + begin); });
}

void AddBlob(const BlobDesc& desc, const float* addend, float* sum) {
  if (desc.type == BlobType::kBf16) {
    const auto add = RT_KERNEL(AddBfloat16);
    const auto* from = ElementsOf<Bfloat16>(addend);
    auto* to = ElementsOf<Bfloat16>(sum);
    return ForEachElementRange(
        desc, [&](int64_t begin, int64_t end) { add(from + begin, end - begin, to + begin); });
  }
  const auto add = RT_KERNEL(AddFloats);
  ForEachElementRange(
      desc, [&](int64_t begin, int64_t end) { add(addend + begin, end - begin, sum + begin); });
}

}  // namespace ringtail
