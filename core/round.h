// Rounding of integers: sizes to whole blocks, cache lines, ranges.
// Not for kernels (core/kernel_isa.h). Thread-safety: pure functions.
#ifndef RINGTAIL_CORE_ROUND_H_
#define RINGTAIL_CORE_ROUND_H_

#include <concepts>
#include <type_traits>

namespace ringtail {

// n / divisor, rounded up: how many parts of size `divisor` cover n. n >= 0, divisor > 0.
template <std::integral Integer>
constexpr Integer CeilDivide(Integer n, std::type_identity_t<Integer> divisor) {
  return (n + divisor - 1) / divisor;
}

// The smallest multiple of `unit` that is at least n. n >= 0, unit > 0.
template <std::integral Integer>
constexpr Integer RoundUp(Integer n, std::type_identity_t<Integer> unit) {
  return CeilDivide(n, unit) * unit;
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_ROUND_H_
