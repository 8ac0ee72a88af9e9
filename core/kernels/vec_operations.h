// What is done with Vec beside arithmetic: transposition, loads that stay in registers, and stores
// around the caches. vec.h and layers/kernels/linear/linear_vec.h include it, each for its lanes; nothing
// else does.
#ifndef RINGTAIL_CORE_KERNELS_VEC_OPERATIONS_H_
#define RINGTAIL_CORE_KERNELS_VEC_OPERATIONS_H_

#include <utility>  // integer_sequence: a type, no code

namespace ringtail::RT_KERNEL_ISA {

template <int... kLane>
using LaneList = std::integer_sequence<int, kLane...>;
using AllLanes = std::make_integer_sequence<int, kLanes>;

// One exchange of a transposition: blocks of kStep x kStep, those off the diagonal change places.
template <int kStep, int... kLane>
[[gnu::always_inline]] static inline void ExchangeBlocks(Vec* a, Vec* b, LaneList<kLane...>) {
  const Vec low =
      __builtin_shufflevector(*a, *b, ((kLane & kStep) != 0 ? kLanes + kLane - kStep : kLane)...);
  *b = __builtin_shufflevector(*a, *b, ((kLane & kStep) != 0 ? kLanes + kLane : kLane + kStep)...);
  *a = low;
}

template <int kStep>
[[gnu::always_inline]] static inline void TransposeFrom(Vec* rows) {
  if constexpr (kStep < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & kStep) == 0) ExchangeBlocks<kStep>(&rows[i], &rows[i + kStep], AllLanes());
    }
    TransposeFrom<2 * kStep>(rows);
  }
}

// rows[i][j] becomes rows[j][i], for kLanes rows.
[[gnu::always_inline]] static inline void TransposeRows(Vec* rows) { TransposeFrom<1>(rows); }

// out[j][i] = src[i * stride + j], for kLanes of each.
static inline void LoadTransposed(const float* src, int64_t stride, Vec* out) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) out[i] = Load(src + i * stride);
  TransposeRows(out);
}

// dst[j * dst_stride + i] = src[i * src_stride + j], for kLanes of each.
static inline void TransposeTile(const float* src, int64_t src_stride, float* dst,
                                 int64_t dst_stride) {
  Vec rows[kLanes];
  LoadTransposed(src, src_stride, rows);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) Store(dst + i * dst_stride, rows[i]);
}

// Load for a value with several uses, which the compiler would otherwise load again for each of
// them: on some processors a load takes as long as the multiply-add that it is a part of.
[[gnu::always_inline]] static inline Vec LoadOnce(const float* p) {
  Vec v = Load(p);
#if defined(__AVX__)
  asm("" : "+v"(v));
#endif
  return v;
}

// Does not first read the line that it overwrites. `p` is aligned to a Vec. FinishStreaming() comes
// before another thread reads.
[[gnu::always_inline]] static inline void StoreStreaming(float* p, Vec v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, reinterpret_cast<Vec*>(p));
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(p, v);
#elif defined(__AVX2__)
  __builtin_ia32_movntps256(p, v);
#else
  Store(p, v);
#endif
}
[[gnu::always_inline]] static inline void FinishStreaming() { __builtin_ia32_sfence(); }

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_CORE_KERNELS_VEC_OPERATIONS_H_
