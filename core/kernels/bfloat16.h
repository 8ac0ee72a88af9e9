// bfloat16: the upper half of a float, 8 bits of exponent and 7 of mantissa. A number is stored as
// Bfloat16 and computed with as float.
//
//   Widen    exact
//   Narrow   to nearest, ties to even; what is beyond the largest number becomes infinity; infinity
//            stays, NaN stays NaN (made quiet, with its sign), subnormal numbers are rounded as all
//            others are
//
// By integers, so that the bits are the same on every processor: the instruction for it
// (vcvtneps2bf16) takes subnormal numbers for zero.
// For kernels of other folders, too (core/kernel_isa.h): those that are templates over their element
// call Widen and NarrowTo for either type.
// Pairs: processors with AVX512-BF16 multiply two numbers that lie side by side by two others and add both
// products to a float, in one instruction (vdpbf16ps).
// Thread-safety: pure functions. Cost of arrays: near the speed of memory.
#ifndef RINGTAIL_CORE_KERNELS_BFLOAT16_H_
#define RINGTAIL_CORE_KERNELS_BFLOAT16_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct Bfloat16 {
  uint16_t bits;
};

[[gnu::always_inline]] static inline float Widen(Bfloat16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
[[gnu::always_inline]] static inline float Widen(float x) { return x; }

[[gnu::always_inline]] static inline Bfloat16 Narrow(float x) {
  constexpr uint32_t kInfinity = 0x7f800000, kQuiet = 0x40;
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > kInfinity;
  return {static_cast<uint16_t>(nan ? bits >> 16 | kQuiet : rounded)};
}

// x as an Element: a float as it is, a Bfloat16 rounded.
template <typename Element>
[[gnu::always_inline]] static inline Element NarrowTo(float x) {
  if constexpr (sizeof(Element) == sizeof(float)) {
    return x;
  } else {
    return Narrow(x);
  }
}

// dst[i] = Widen(src[i]) and Narrow(src[i]). The same bits on every instruction set. They do not
// overlap.
RT_DECLARE_KERNEL(void WidenBfloat16(const Bfloat16* src, int64_t n, float* dst))
RT_DECLARE_KERNEL(void NarrowToBfloat16(const float* src, int64_t n, Bfloat16* dst))
// sum[i] = Narrow(Widen(sum[i]) + Widen(addend[i])): AddFloats (core/kernels/add.h) of bfloat16.
RT_DECLARE_KERNEL(void AddBfloat16(const Bfloat16* addend, int64_t n, Bfloat16* sum))
// Numbers of two rows side by side: to[i] = {Narrow(first[i]), Narrow(second[i])}; null second: zeros.
RT_DECLARE_KERNEL(void PairBfloat16Rows(const float* first, const float* second, int64_t n,
                                        Bfloat16* to))

// Whether the processor has the instruction for pairs. A function that uses its intrinsics says
// RT_BF16_PRODUCTS.
RT_DECLARE_KERNEL(bool HasBf16Products())
#define RT_BF16_PRODUCTS __attribute__((target("avx512bf16")))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_BFLOAT16_H_
