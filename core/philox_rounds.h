// The ten rounds of Philox4x32-10 (core/random.h), for kernels (core/kernel_isa.h), too: a loop
// over blocks around them is vectorized.
// Thread-safety: a pure function. Source: Salmon et al., SC'11, section 3.3 and table 2.
#ifndef RINGTAIL_CORE_PHILOX_ROUNDS_H_
#define RINGTAIL_CORE_PHILOX_ROUNDS_H_

#include <cstdint>

namespace ringtail {

// Replaces the counter {c0, c1, c2, c3} by the four words of its block.
[[gnu::always_inline]] static inline void PhiloxRounds(uint64_t key, uint32_t& c0, uint32_t& c1,
                                                       uint32_t& c2, uint32_t& c3) {
  constexpr uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;  // multipliers
  constexpr uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;  // Weyl key increments
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kM0 * c0, p1 = kM1 * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += kW0;
    k1 += kW1;
  }
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PHILOX_ROUNDS_H_
