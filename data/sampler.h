// Which samples form which batch: a pure function of (seed, epoch, position), with shards of the global
// batch as well. Without state, resuming and changing the number of ranks are a seek. An epoch is a permutation of all samples,
// cut into whole batches; the remainder is dropped in this epoch.
//
// With shards (data.shards) the samples are dealt once for the whole run, and every batch takes
// as many of each shard, in its order:
//
//   batch      0               1               ...
//   row        0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//   shard      0 0 1 1 2 2 3 3 0 0 1 1 2 2 3 3      4 shards
//
// So each of as many ranks meets only the samples of one shard, and keeps them decoded; that each
// batch has some of each shard is stratified sampling (Cochran 1977, chapter 5): not biased.
#ifndef RINGTAIL_DATA_SAMPLER_H_
#define RINGTAIL_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

namespace ringtail {

// Fisher-Yates over 0..n-1 with Philox(seed, kShuffleStream, epoch). O(n) time and memory.
std::vector<int64_t> EpochPermutation(uint64_t seed, int64_t epoch, int64_t n);

struct Sharding {
  int64_t shards = 1;  // >= 1
  int64_t batch = 1;   // rows that are divided evenly among them: the global batch
};

// The samples 0..n-1 by position. Without shards, an EpochPermutation. With them, a shard is the same
// set of samples in every epoch; it has as many as there are positions for it.
std::vector<int64_t> EpochOrder(uint64_t seed, int64_t epoch, int64_t n, const Sharding& sharding);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SAMPLER_H_
