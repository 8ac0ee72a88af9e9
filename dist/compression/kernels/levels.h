// Floats to whole numbers of 8 or 4 bits, and back. See core/kernel_isa.h for how this is compiled
// and called.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_LEVELS_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_LEVELS_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// codes[i] = the integer nearest to x[i] factor, ties to even; |x factor| must be below 127.5.
RT_DECLARE_KERNEL(void RoundToCodes(const float* x, int64_t n, float factor, int8_t* codes))

// Stochastic: y = |x[i]| factor lies between the levels l and l + 1, and becomes l + 1 if a draw
// from [0, 1), the upper 24 bits of words[i], is below y - l. With x's sign. y is cut at `levels`.
RT_DECLARE_KERNEL(void DrawCodes(const float* x, int64_t n, float factor, int levels,
                                 const uint32_t* words, int8_t* codes))

// sum[i] += unit codes[i]
RT_DECLARE_KERNEL(void AddCodes(const int8_t* codes, int64_t n, float unit, float* sum))

// Codes from -8 to 7, two to a byte, the first in the lower half. n is even.
RT_DECLARE_KERNEL(void PackNibbles(const int8_t* codes, int64_t n, uint8_t* bytes))
RT_DECLARE_KERNEL(void UnpackNibbles(const uint8_t* bytes, int64_t n, int8_t* codes))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_LEVELS_H_
