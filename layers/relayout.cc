#include "layers/relayout.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/kernels/relayout.h"

namespace ringtail {
namespace {

constexpr int64_t kGrainFloats = 1 << 14;  // below this a thread costs more than it saves

// Calls fn(n, first channel, channels) for every block of `block` channels of every sample, in
// parallel.
template <typename Function>
void ForEachChannelBlock(const BlobDesc& desc, int64_t block, const Function& fn) {
  const int64_t blocks = (desc.C + block - 1) / block;
  const int64_t grain = std::max<int64_t>(1, kGrainFloats / (desc.plane() * block));
  ParallelFor(desc.N * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % blocks * block;
      fn(i / blocks, c, std::min(block, desc.C - c));
    }
  });
}

int64_t Offset(const BlobDesc& desc, int64_t n, int64_t c) {
  return (n * desc.channel_blocks() + c / desc.block) * desc.plane() * desc.block + c % desc.block;
}

void CopyAll(const float* src, float* dst, int64_t elements) {
  ParallelFor(elements, kGrainFloats, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, (end - begin) * sizeof(float));
  });
}

void BlockToOtherBlock(const BlobDesc& from, const float* src, const BlobDesc& to, float* dst) {
  ForEachChannelBlock(to, to.block, [&](int64_t n, int64_t first, int64_t channels) {
    float* out = dst + Offset(to, n, first);
    for (int64_t i = 0; i < to.block; ++i) {
      const float* in = i < channels ? src + Offset(from, n, first + i) : nullptr;
      for (int64_t p = 0; p < to.plane(); ++p) {
        out[p * to.block + i] = in != nullptr ? in[p * from.block] : 0;
      }
    }
  });
}

}  // namespace

bool SameLayout(const BlobDesc& a, const BlobDesc& b) {
  if (!a.SameShape(b)) return false;
  if (a.block == b.block) return true;
  return a.plane() == 1 && a.C % a.block == 0 && b.C % b.block == 0;
}

void Relayout(const BlobDesc& from, const float* src, const BlobDesc& to, float* dst) {
  RT_CHECK(from.SameShape(to), from.ShapeString() + " is not " + to.ShapeString());
  if (SameLayout(from, to)) {
    CopyAll(src, dst, from.elements());
  } else if (from.block == 1) {
    const auto kernel = RT_KERNEL(InterleaveChannels);
    ForEachChannelBlock(to, to.block, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, to.block,
             dst + Offset(to, n, first));
    });
  } else if (to.block == 1) {
    const auto kernel = RT_KERNEL(DeinterleaveChannels);
    ForEachChannelBlock(from, from.block, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, from.block,
             dst + Offset(to, n, first));
    });
  } else {
    BlockToOtherBlock(from, src, to, dst);
  }
}

}  // namespace ringtail
