#include "layers/convolution/tiles/bias_gradient.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_tiles.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {

void SumBiasGradient(const BlobDesc& desc, const float* diff_dst, float* diff_bias) {
  constexpr int64_t kBlock = kTileOutputs;
  const int64_t blocks = desc.channel_blocks(), plane = desc.plane();
  const auto* const elements = ElementsOf<Bfloat16>(diff_dst);
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      double sums[kBlock] = {};
      for (int64_t n = 0; n < desc.N; ++n) {
        RT_KERNEL(AddBf16Pixels, elements + (n * blocks + block) * plane * kBlock, plane, sums);
      }
      const int64_t first = block * kBlock;
      for (int64_t k = 0; k < std::min(kBlock, desc.C - first); ++k) {
        diff_bias[first + k] = static_cast<float>(sums[k]);
      }
    }
  });
}

}  // namespace ringtail
