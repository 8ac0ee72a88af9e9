// Vec (vec.h), but one register on every instruction set: in the baseline four lanes instead of two
// times four. The layouts of plain matrices do not depend on it, and GCC keeps no array of pairs of
// registers in registers. Only for layers/kernels/linear/linear*.cc, instead of vec.h.
#ifndef RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_VEC_H_
#define RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_VEC_H_

#if defined(__AVX2__)
#include "core/kernels/vec.h"
#else

#include <cstdint>

namespace ringtail::RT_KERNEL_ISA {

constexpr int kLanes = 4;
constexpr int kRegisters = 16;

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
// (As that of core/kernels/vec.h.)
typedef Vec VecInMemory __attribute__((aligned(4), may_alias));  // NOLINT(modernize-use-using)

[[gnu::always_inline]] static inline Vec Load(const float* p) {
  return *reinterpret_cast<const VecInMemory*>(p);
}
[[gnu::always_inline]] static inline void Store(float* p, Vec v) {
  *reinterpret_cast<VecInMemory*>(p) = v;
}
[[gnu::always_inline]] static inline Vec Broadcast(float x) { return x - Vec{}; }

}  // namespace ringtail::RT_KERNEL_ISA

#include "core/kernels/vec_operations.h"  // for these lanes

#endif  // defined(__AVX2__)

#endif  // RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_VEC_H_
