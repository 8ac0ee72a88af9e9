// Load and Store of vec.h for bfloat16: a register of floats from kLanes of them, and back, with the
// bits of Widen and Narrow (core/kernels/bfloat16.h). Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_VEC_BFLOAT16_H_
#define RINGTAIL_LAYERS_KERNELS_VEC_BFLOAT16_H_

#include "core/kernels/bfloat16.h"
#include "core/kernels/vec.h"

namespace ringtail::RT_KERNEL_ISA {

using VecBits = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using HalfBits = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));
typedef HalfBits HalfBitsInMemory  // NOLINT(modernize-use-using): as VecInMemory
    __attribute__((aligned(2), may_alias));

[[gnu::always_inline]] static inline Vec Load(const Bfloat16* p) {
  const HalfBits half = *reinterpret_cast<const HalfBitsInMemory*>(p);
  return reinterpret_cast<Vec>(__builtin_convertvector(half, VecBits) << 16);
}

[[gnu::always_inline]] static inline void Store(Bfloat16* p, Vec v) {
  const VecBits bits = reinterpret_cast<VecBits>(v);
  const VecBits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const VecBits quiet = bits >> 16 | 0x40;
  const VecBits value =
      v == v ? rounded : quiet;  // NOLINT(misc-redundant-expression): a NaN is not
  *reinterpret_cast<HalfBitsInMemory*>(p) = __builtin_convertvector(value, HalfBits);
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_VEC_BFLOAT16_H_
