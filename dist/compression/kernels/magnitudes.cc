#include "dist/compression/kernels/magnitudes.h"

#include "dist/compression/kernels/float_bits.h"
#include "dist/compression/kernels/lanes16.h"

namespace ringtail::RT_KERNEL_ISA {

int64_t CountReaching(const float* x, int64_t n, int32_t magnitude) {
  int32_t count = 0;  // 32 bits, so that as many lanes count as compare
#pragma omp simd reduction(+ : count)
  for (int64_t i = 0; i < n; ++i) count += MagnitudeBits(x[i]) >= magnitude ? 1 : 0;
  return count;
}

void FindReaching(const float* x, int64_t n, int32_t magnitude, int32_t* places) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    // Most groups have none.
    uint32_t bits = MagnitudeAtLeast(Load16(x + i), magnitude);
    for (; bits != 0; bits &= bits - 1) {
      *places++ = static_cast<int32_t>(i) + __builtin_ctz(bits);
    }
  }
  for (; i < n; ++i) {
    if (MagnitudeBits(x[i]) >= magnitude) *places++ = static_cast<int32_t>(i);
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
