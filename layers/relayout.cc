#include "layers/relayout.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "layers/kernels/relayout.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

// Calls fn(n, first channel, channels) for every channel block of every sample, in parallel.
template <typename Function>
void ForEachBlockedChannels(const BlobDesc& blocked, const Function& fn) {
  const int64_t blocks = blocked.channel_blocks();
  ForEachChannelBlock(blocked, [&](int64_t i) {
    const int64_t c = i % blocks * blocked.block;
    fn(i / blocks, c, std::min(blocked.block, blocked.C - c));
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
  ForEachBlockedChannels(to, [&](int64_t n, int64_t first, int64_t channels) {
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
    ForEachBlockedChannels(to, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, to.block,
             dst + Offset(to, n, first));
    });
  } else if (to.block == 1) {
    const auto kernel = RT_KERNEL(DeinterleaveChannels);
    ForEachBlockedChannels(from, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, from.block,
             dst + Offset(to, n, first));
    });
  } else {
    BlockToOtherBlock(from, src, to, dst);
  }
}

}  // namespace ringtail
