#include "core/kernels/bfloat16.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {
typedef uint32_t Pair __attribute__((aligned(2), may_alias));  // NOLINT(modernize-use-using)
}  // namespace

void WidenBfloat16(const Bfloat16* src, int64_t n, float* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Widen(src[i]);
}

void NarrowToBfloat16(const float* src, int64_t n, Bfloat16* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Narrow(src[i]);
}

void AddBfloat16(const Bfloat16* addend, int64_t n, Bfloat16* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] = Narrow(Widen(sum[i]) + Widen(addend[i]));
}

void PairBfloat16Rows(const float* first, const float* second, int64_t n, Bfloat16* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t low = Narrow(first[i]).bits;
    const uint32_t high = second != nullptr ? Narrow(second[i]).bits : 0;
    reinterpret_cast<Pair*>(to)[i] = low | high << 16;
  }
}

#if defined(__AVX512F__)
bool HasBf16Products() { return __builtin_cpu_supports("avx512bf16") != 0; }
#else
bool HasBf16Products() { return false; }
#endif

}  // namespace ringtail::RT_KERNEL_ISA
