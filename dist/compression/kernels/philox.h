// Random words in vectors: the sequence of Rng::Bits (core/random.h) under a key.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_PHILOX_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_PHILOX_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

constexpr int64_t kPhiloxGroup = 64;  // words are drawn in whole groups of this size

// words[i] = word first + i, for i < n; both multiples of kPhiloxGroup.
RT_DECLARE_KERNEL(void PhiloxWords(uint64_t key, int64_t first, int64_t n, uint32_t* words))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_PHILOX_H_
