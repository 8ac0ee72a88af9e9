#include "layers/kernels/dropout.h"

#include "core/philox_rounds.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int64_t kChunk = 256;  // Philox blocks at a time: their words stay in the nearest cache

// words[i * block_stride + k * word_stride] = word k of block first + i, for i < kChunk. Block b
// has the counter {position, group} = {b >> shift, first_group + b % 2^shift},
// where 0 <= shift <= 32.
template <int64_t block_stride, int64_t word_stride>
inline void PhiloxChunk(uint64_t key, int64_t first, uint32_t first_group, int shift,
                        uint32_t* words) {
  const uint32_t group_mask = shift == 32 ? ~0U : (1U << shift) - 1;
#pragma omp simd
  for (int64_t i = 0; i < kChunk; ++i) {
    const uint64_t block = static_cast<uint64_t>(first + i);
    uint32_t c0 = static_cast<uint32_t>(block >> shift);
    uint32_t c1 = first_group + (static_cast<uint32_t>(block) & group_mask);
    uint32_t c2 = 0, c3 = 0;
    PhiloxRounds(key, c0, c1, c2, c3);
    words[i * block_stride] = c0;
    words[i * block_stride + word_stride] = c1;
    words[i * block_stride + 2 * word_stride] = c2;
    words[i * block_stride + 3 * word_stride] = c3;
  }
}

inline void ApplyMask(const DropoutDraw& draw, const uint32_t* words, int64_t n, const float* src,
                      float* dst) {
  const uint32_t threshold = draw.threshold;
  const float scale = draw.scale;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = src[i] * (words[i] < threshold ? 0.0F : scale);
}

}  // namespace

void DropoutInterleaved(const DropoutDraw& draw, uint32_t first_group, int64_t groups_per_position,
                        int64_t elements, const float* src, float* dst) {
  uint32_t words[kDropoutGroup * kChunk];
  const int shift = __builtin_ctzll(static_cast<uint64_t>(groups_per_position));
  for (int64_t i = 0; i < elements; i += kDropoutGroup * kChunk) {
    const int64_t left = elements - i;
    PhiloxChunk<kDropoutGroup, 1>(draw.key, i / kDropoutGroup, first_group, shift, words);
    ApplyMask(draw, words, left < kDropoutGroup * kChunk ? left : kDropoutGroup * kChunk, src + i,
              dst + i);
  }
}

void DropoutPlanar(const DropoutDraw& draw, uint32_t group, int64_t channels, int64_t positions,
                   const float* src, float* dst) {
  uint32_t words[kDropoutGroup * kChunk];
  for (int64_t i = 0; i < positions; i += kChunk) {
    const int64_t n = positions - i < kChunk ? positions - i : kChunk;
    PhiloxChunk<1, kChunk>(draw.key, i, group, 0, words);
    for (int64_t c = 0; c < channels; ++c) {
      ApplyMask(draw, words + c * kChunk, n, src + c * positions + i, dst + c * positions + i);
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
