#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace ringtail {
namespace {

void Shuffle(Rng* rng, std::span<int64_t> samples) {
  for (int64_t i = std::ssize(samples) - 1; i > 0; --i) {
    std::swap(samples[i], samples[rng->Below(i + 1)]);
  }
}

std::vector<int64_t> Shuffled(Rng rng, int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  Shuffle(&rng, order);
  return order;
}

// Of each row of a batch, as the rows are divided among ranks: the first parts are one longer if the
// batch does not divide.
std::vector<int64_t> ShardOfRow(const Sharding& sharding) {
  const int64_t small = sharding.batch / sharding.shards, longer = sharding.batch % sharding.shards;
  std::vector<int64_t> shards;
  for (int64_t shard = 0; shard < sharding.shards; ++shard) {
    shards.insert(shards.end(), small + (shard < longer ? 1 : 0), shard);
  }
  return shards;
}

}  // namespace

std::vector<int64_t> EpochPermutation(uint64_t seed, int64_t epoch, int64_t n) {
  return Shuffled(Rng(RngKey(seed).With(kShuffleStream).With(static_cast<uint64_t>(epoch))), n);
}

std::vector<int64_t> EpochOrder(uint64_t seed, int64_t epoch, int64_t n, const Sharding& sharding) {
  RT_CHECK(sharding.shards >= 1 && sharding.batch >= 1, "a batch is divided among shards");
  if (sharding.shards == 1) return EpochPermutation(seed, epoch, n);
  const std::vector<int64_t> shard_of_row = ShardOfRow(sharding);
  // By shard, its first sample in `dealt`; that of the next one is its end.
  std::vector<int64_t> first(sharding.shards + 1, 0);
  for (int64_t position = 0; position < n; ++position) {
    ++first[shard_of_row[position % sharding.batch] + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());

  std::vector<int64_t> dealt = Shuffled(Rng(RngKey(seed).With(kShardStream)), n);
  Rng rng(RngKey(seed).With(kShuffleStream).With(static_cast<uint64_t>(epoch)));
  for (int64_t shard = 0; shard < sharding.shards; ++shard) {
    Shuffle(&rng, std::span(dealt).subspan(first[shard], first[shard + 1] - first[shard]));
  }
  std::vector<int64_t> order(n);
  for (int64_t position = 0; position < n; ++position) {
    order[position] = dealt[first[shard_of_row[position % sharding.batch]]++];
  }
  return order;
}

}  // namespace ringtail
