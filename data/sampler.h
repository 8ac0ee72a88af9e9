// Which samples form which batch: a pure function of (seed, epoch, position). Without state,
// resuming and changing the number of ranks are a seek. An epoch is a permutation of all samples,
// cut into whole batches; the remainder is dropped in this epoch.
#ifndef RINGTAIL_DATA_SAMPLER_H_
#define RINGTAIL_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

namespace ringtail {

// Fisher-Yates over 0..n-1 with Philox(seed, kShuffleStream, epoch). O(n) time and memory.
std::vector<int64_t> EpochPermutation(uint64_t seed, int64_t epoch, int64_t n);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SAMPLER_H_
