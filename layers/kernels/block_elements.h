// One pixel of a channel block, kBlock elements, as floats and back: for loops of kBlock floats, which
// the compiler would vectorize by half registers if they read 16-bit numbers themselves.
// Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_BLOCK_ELEMENTS_H_
#define RINGTAIL_LAYERS_KERNELS_BLOCK_ELEMENTS_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"

namespace ringtail::RT_KERNEL_ISA {

template <int kBlock>
struct BlockBits {  // of a block's elements, in a register
  typedef uint16_t Half __attribute__((vector_size(kBlock * sizeof(uint16_t))));
  typedef uint32_t Wide __attribute__((vector_size(kBlock * sizeof(uint32_t))));
};

template <int kBlock>
[[gnu::always_inline]] static inline void LoadBlock(const float* from, float* to) {
#pragma omp simd
  for (int c = 0; c < kBlock; ++c) to[c] = from[c];
}

template <int kBlock>
[[gnu::always_inline]] static inline void StoreBlock(const float* from, float* to) {
#pragma omp simd
  for (int c = 0; c < kBlock; ++c) to[c] = from[c];
}

template <int kBlock>
[[gnu::always_inline]] static inline void LoadBlock(const Bfloat16* from, float* to) {
  if constexpr (kBlock == 1) {
    *to = Widen(*from);
  } else {
    typename BlockBits<kBlock>::Half half;
    __builtin_memcpy(&half, from, sizeof(half));
    const auto bits = __builtin_convertvector(half, typename BlockBits<kBlock>::Wide) << 16;
    __builtin_memcpy(to, &bits, sizeof(bits));
  }
}

template <int kBlock>
[[gnu::always_inline]] static inline void StoreBlock(const float* from, Bfloat16* to) {
  if constexpr (kBlock == 1) {
    *to = Narrow(*from);
  } else {
    using Wide = typename BlockBits<kBlock>::Wide;
    Wide bits;
    __builtin_memcpy(&bits, from, sizeof(bits));
    const Wide rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const Wide value = (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded;
    const auto half = __builtin_convertvector(value, typename BlockBits<kBlock>::Half);
    __builtin_memcpy(to, &half, sizeof(half));
  }
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_BLOCK_ELEMENTS_H_
