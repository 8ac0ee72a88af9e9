// Dropout's inner loops: Philox4x32-10 (core/random.h) in vectors, and the mask it makes.
//
// One Philox block decides on a group of four consecutive channels at one position:
//   word(c, position) = Philox(counter = {position, c / 4, 0, 0}, key)[c % 4]
//   dst = src * (word < threshold ? 0 : scale)
// so that the mask does not depend on how a blob lies in memory. dst may be src.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_LAYERS_KERNELS_DROPOUT_H_
#define RINGTAIL_LAYERS_KERNELS_DROPOUT_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

constexpr int64_t kDropoutGroup = 4;  // channels that share one Philox block

struct DropoutDraw {
  uint64_t key;
  uint32_t threshold;  // rate * 2^32
  float scale;         // of what is kept
};

// Channels lie side by side: groups_per_position (a power of two) groups at position 0, then as
// many at position 1, ...; `elements` floats in total, the last group may be cut short.
RT_DECLARE_KERNEL(void DropoutInterleaved(const DropoutDraw& draw, uint32_t first_group,
                                          int64_t groups_per_position, int64_t elements,
                                          const float* src, float* dst))

// One group whose `channels` (1 to 4) planes of `positions` floats are adjacent.
RT_DECLARE_KERNEL(void DropoutPlanar(const DropoutDraw& draw, uint32_t group, int64_t channels,
                                     int64_t positions, const float* src, float* dst))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_DROPOUT_H_
