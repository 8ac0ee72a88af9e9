// Vec: one register of floats, as wide as the instruction set that the including kernel is compiled
// for. For kernels that the compiler would not vectorize well from plain loops: a matrix product
// whose accumulators must stay in registers. Written with GCC's vector extension, so that one
// source serves every width. Only for sources in folders kernels/.
#ifndef RINGTAIL_CORE_KERNELS_VEC_H_
#define RINGTAIL_CORE_KERNELS_VEC_H_

#include <cstdint>

namespace ringtail::RT_KERNEL_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
constexpr int kRegisters = 16;
#else
constexpr int kLanes = 8;  // two registers of four
constexpr int kRegisters = 16;
#endif

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
// (clang heeds a lower alignment in a typedef alone.)
typedef Vec VecInMemory __attribute__((aligned(4), may_alias));  // NOLINT(modernize-use-using)

[[gnu::always_inline]] static inline Vec Load(const float* p) {
  return *reinterpret_cast<const VecInMemory*>(p);
}
[[gnu::always_inline]] static inline void Store(float* p, Vec v) {
  *reinterpret_cast<VecInMemory*>(p) = v;
}
[[gnu::always_inline]] static inline Vec Broadcast(float x) {
  return x - Vec{};  // not +: x - 0 is x for every x, which the compiler knows
}

}  // namespace ringtail::RT_KERNEL_ISA

#include "core/kernels/vec_operations.h"  // for these lanes

#endif  // RINGTAIL_CORE_KERNELS_VEC_H_
