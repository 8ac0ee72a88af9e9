#include "layers/padding.h"

#include <algorithm>

#include "core/parallel_for.h"

namespace ringtail {

void ZeroPaddingChannels(const BlobDesc& desc, float* data) {
  const int64_t used = desc.C % desc.block;  // channels of the last block that exist
  if (used == 0) return;
  const int64_t block_elements = desc.plane() * desc.block;
  ParallelFor(desc.N, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float* last = data + ((n + 1) * desc.channel_blocks() - 1) * block_elements;
      for (int64_t p = 0; p < block_elements; p += desc.block) {
        std::fill(last + p + used, last + p + desc.block, 0.0F);
      }
    }
  });
}

}  // namespace ringtail
