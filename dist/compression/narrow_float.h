// f16 and bf16 for the values of sparse payloads: few, so one at a time and without instructions
// that some machines lack.
//
//   f32     1 sign   8 exponent   23 fraction
//   bf16    1        8             7             f32's upper half
//   f16     1        5            10             up to 65504, down to 2^-24
//
// Rounding: to the nearest, ties to even. f16 of a finite number beyond 65504 is 65504; bf16 of
// more than its largest number is infinity. Infinity stays infinity, NaN stays NaN.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_NARROW_FLOAT_H_
#define RINGTAIL_DIST_COMPRESSION_NARROW_FLOAT_H_

#include <cstdint>

namespace ringtail {

uint16_t HalfFromFloat(float value);
float FloatFromHalf(uint16_t half);
uint16_t Bfloat16FromFloat(float value);
float FloatFromBfloat16(uint16_t bfloat16);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_NARROW_FLOAT_H_
