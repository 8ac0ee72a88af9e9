#include "layers/linear/plain_rows.h"

#include <algorithm>

#include "layers/kernels/linear/linear.h"
#include "layers/parallel_blobs.h"
#include "layers/relayout.h"

namespace ringtail {

PlainRows::PlainRows(const BlobDesc& blob) : blob_(blob), plain_(blob) { plain_.block = 1; }

bool PlainRows::is_plain() const { return SameLayout(blob_, plain_); }

const float* PlainRows::Read(const float* blob, float* copy) const {
  if (is_plain()) return blob;
  if (blob_.type != BlobType::kF32) {
    Relayout(blob_, blob, plain_, copy);
    return copy;
  }
  const int64_t blocks = blob_.channel_blocks(), block = blob_.block, plane = blob_.plane();
  ForEachChannelBlock(blob_, [&](int64_t i) {
    const int64_t n = i / blocks, c = i % blocks * block;
    RT_KERNEL(Transpose, blob + i * plane * block, block, plane, std::min(block, blob_.C - c),
              copy + (n * blob_.C + c) * plane, plane);
  });
  return copy;
}

void PlainRows::Write(const float* rows, float* blob) const {
  if (!is_plain()) Relayout(plain_, rows, blob_, blob);
}

}  // namespace ringtail
