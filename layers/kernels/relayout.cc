#include "layers/kernels/relayout.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int64_t kTile = 64;  // pixels: a tile of 16 channels stays in the first-level cache

template <int64_t kBlock, typename Element>
void Interleave(const Element* src, int64_t plane, Element* dst) {
  for (int64_t p = 0; p < plane; ++p) {
    for (int64_t c = 0; c < kBlock; ++c) dst[p * kBlock + c] = src[c * plane + p];
  }
}

}  // namespace

template <typename Element>
void InterleaveChannels(const Element* src, int64_t plane, int64_t channels, int64_t block,
                        Element* dst) {
  if (channels == 16 && block == 16) return Interleave<16>(src, plane, dst);
  if (channels == 8 && block == 8) return Interleave<8>(src, plane, dst);
  for (int64_t p = 0; p < plane; ++p) {
    for (int64_t c = 0; c < channels; ++c) dst[p * block + c] = src[c * plane + p];
    for (int64_t c = channels; c < block; ++c) dst[p * block + c] = Element{};
  }
}

template <typename Element>
void DeinterleaveChannels(const Element* src, int64_t plane, int64_t channels, int64_t block,
                          Element* dst) {
  for (int64_t begin = 0; begin < plane; begin += kTile) {
    const int64_t end = begin + kTile < plane ? begin + kTile : plane;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = begin; p < end; ++p) dst[c * plane + p] = src[p * block + c];
    }
  }
}

template void InterleaveChannels(const float*, int64_t, int64_t, int64_t, float*);
template void DeinterleaveChannels(const float*, int64_t, int64_t, int64_t, float*);
template void InterleaveChannels(const Bfloat16*, int64_t, int64_t, int64_t, Bfloat16*);
template void DeinterleaveChannels(const Bfloat16*, int64_t, int64_t, int64_t, Bfloat16*);

}  // namespace ringtail::RT_KERNEL_ISA
