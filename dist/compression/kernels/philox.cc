#include "dist/compression/kernels/philox.h"

#include "core/philox_rounds.h"

namespace ringtail::RT_KERNEL_ISA {

void PhiloxWords(uint64_t key, int64_t first, int64_t n, uint32_t* words) {
  constexpr int64_t kBlocks = kPhiloxGroup / 4;
  for (int64_t i = 0; i < n; i += kPhiloxGroup) {
    const auto block = static_cast<uint64_t>(first + i) / 4;
    const auto low = static_cast<uint32_t>(block), high = static_cast<uint32_t>(block >> 32);
#pragma omp simd
    for (int64_t j = 0; j < kBlocks; ++j) {
      // A group starts at a multiple of kBlocks, so that the counter's lower half does not wrap.
      uint32_t c0 = low + static_cast<uint32_t>(j), c1 = high, c2 = 0, c3 = 0;
      PhiloxRounds(key, c0, c1, c2, c3);
      words[i + 4 * j] = c0;
      words[i + 4 * j + 1] = c1;
      words[i + 4 * j + 2] = c2;
      words[i + 4 * j + 3] = c3;
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
