#include "layers/kernels/relayout.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int64_t kTile = 64;  // pixels: a tile of 16 channels stays in the first-level cache

template <int64_t kBlock>
void Interleave(const float* src, int64_t plane, float* dst) {
  for (int64_t p = 0; p < plane; ++p) {
    for (int64_t c = 0; c < kBlock; ++c) dst[p * kBlock + c] = src[c * plane + p];
  }
}

}  // namespace

void InterleaveChannels(const float* src, int64_t plane, int64_t channels, int64_t block,
                        float* dst) {
  if (channels == 16 && block == 16) return Interleave<16>(src, plane, dst);
  if (channels == 8 && block == 8) return Interleave<8>(src, plane, dst);
  for (int64_t p = 0; p < plane; ++p) {
    for (int64_t c = 0; c < channels; ++c) dst[p * block + c] = src[c * plane + p];
    for (int64_t c = channels; c < block; ++c) dst[p * block + c] = 0;
  }
}

void DeinterleaveChannels(const float* src, int64_t plane, int64_t channels, int64_t block,
                          float* dst) {
  for (int64_t begin = 0; begin < plane; begin += kTile) {
    const int64_t end = begin + kTile < plane ? begin + kTile : plane;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = begin; p < end; ++p) dst[c * plane + p] = src[p * block + c];
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
