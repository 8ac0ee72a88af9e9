// One bit per element, sixteen elements at a time: bit i of a plane is bit i % 8 of byte i / 8.
//
//   sign plane     1: the sign bit is set
//   two planes     plus: the element is +t      minus: it is -t      neither: it is 0
//
// Planes have (n + 7) / 8 bytes; bits after the last element are written as zeros.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_BIT_PLANES_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_BIT_PLANES_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// Returns the number of bits that it sets.
RT_DECLARE_KERNEL(int64_t PackSigns(const float* x, int64_t n, uint8_t* plane))
// sum[i] += bit i ? if_set : if_clear
RT_DECLARE_KERNEL(void AddSigns(const uint8_t* plane, int64_t n, float if_clear, float if_set,
                                float* sum))

// plus: x >= threshold; minus: x <= -threshold. The threshold must be above 0.
RT_DECLARE_KERNEL(void PackBeyond(const float* x, int64_t n, float threshold, uint8_t* plus,
                                  uint8_t* minus))
// The same, and then x -= what the planes say.
RT_DECLARE_KERNEL(void SubtractBeyond(float* x, int64_t n, float threshold, uint8_t* plus,
                                      uint8_t* minus))
// Plus or minus, by x's sign, if a draw from [0, 1), the upper 24 bits of words[i], is below
// |x[i]| factor. `words` extends to the next multiple of 16.
RT_DECLARE_KERNEL(void PackDrawn(const float* x, int64_t n, float factor, const uint32_t* words,
                                 uint8_t* plus, uint8_t* minus))
// sum[i] += plus ? value : minus ? -value : 0
RT_DECLARE_KERNEL(void AddTernary(const uint8_t* plus, const uint8_t* minus, int64_t n, float value,
                                  float* sum))
// sum[i] += size, 0 or -size, by the sign of votes[i].
RT_DECLARE_KERNEL(void AddVotes(const float* votes, int64_t n, float size, float* sum))
// Whether no bit is set in both planes.
RT_DECLARE_KERNEL(bool Disjoint(const uint8_t* plus, const uint8_t* minus, int64_t bytes))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_BIT_PLANES_H_
