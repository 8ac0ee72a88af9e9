#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/data/small_loader.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EpochPermutationTest, ContainsEveryIndexOnce) {
  for (const int64_t n : {2, 3, 100, 4097}) {
    std::vector<int64_t> order = EpochPermutation(1, 0, n);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(static_cast<int64_t>(order.size()), n);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(order[i], i);
  }
}

TEST(EpochPermutationTest, NoneAndOne) {
  EXPECT_THAT(EpochPermutation(1, 0, 0), IsEmpty());
  EXPECT_THAT(EpochPermutation(1, 0, 1), ElementsAre(0));
}

TEST(EpochPermutationTest, EpochsAndSeedsDiffer) {
  EXPECT_EQ(EpochPermutation(1, 5, 100), EpochPermutation(1, 5, 100));
  EXPECT_NE(EpochPermutation(1, 5, 100), EpochPermutation(1, 6, 100));
  EXPECT_NE(EpochPermutation(1, 5, 100), EpochPermutation(2, 5, 100));
}

// A run that is resumed on another machine or with a later version must see the same order.
TEST(EpochPermutationTest, GoldenOrder) {
  EXPECT_THAT(EpochPermutation(1, 0, 10), ElementsAre(0, 2, 3, 5, 9, 1, 7, 8, 6, 4));
  EXPECT_THAT(EpochPermutation(1, 1, 10), ElementsAre(3, 8, 2, 1, 4, 7, 6, 9, 5, 0));
  EXPECT_THAT(EpochPermutation(12345678901234, 7, 10), ElementsAre(5, 3, 4, 2, 9, 8, 0, 7, 1, 6));
}

// All 24 orders of 4 occur about equally often:
// 9,600 draws give 400 each, +- 20 (one sigma).
TEST(EpochPermutationTest, IsUniform) {
  constexpr int kDraws = 9600, kExpected = 400, kFiveSigma = 100;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[EpochPermutation(1, epoch, 4)];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kExpected, kFiveSigma);
}

// Samples that the rows of one rank of `ranks` meet in `epochs` epochs, as they come.
std::vector<int64_t> MetByRank(int64_t rank, int64_t ranks, const Sharding& sharding,
                               int64_t samples, int64_t epochs) {
  std::vector<int64_t> met;
  const int64_t rows = sharding.batch / ranks;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<int64_t> order = EpochOrder(1, epoch, samples, sharding);
    for (int64_t position = 0; position < samples; ++position) {
      if (position % sharding.batch / rows == rank) met.push_back(order[position]);
    }
  }
  return met;
}

TEST(EpochOrderTest, ARankOfAsManyMeetsItsShardOnceInEachEpoch) {
  constexpr int64_t kSamples = 60, kEpochs = 3;
  const Sharding sharding{.shards = 4, .batch = 12};
  std::set<int64_t> all;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const std::vector<int64_t> met = MetByRank(rank, 4, sharding, kSamples, kEpochs);
    std::map<int64_t, int> times;
    for (const int64_t sample : met) ++times[sample];
    EXPECT_EQ(times.size(), 15u);
    for (const auto& [sample, count] : times) {
      EXPECT_EQ(count, kEpochs);
      all.insert(sample);
    }
    // In another order each time.
    EXPECT_FALSE(std::equal(met.begin(), met.begin() + 15, met.begin() + 15));
  }
  EXPECT_EQ(all.size(), 60u);
}

// Whatever does not divide: samples by batches, batches by shards, and more shards than rows.
TEST(EpochOrderTest, ContainsEveryIndexOnce) {
  for (const Sharding& sharding :
       {Sharding{.shards = 3, .batch = 8}, Sharding{.shards = 8, .batch = 3},
        Sharding{.shards = 2, .batch = 200}, Sharding{}}) {
    std::vector<int64_t> order = EpochOrder(7, 2, 101, sharding);
    std::ranges::sort(order);
    ASSERT_EQ(order.size(), 101u);
    for (int64_t i = 0; i < 101; ++i) EXPECT_EQ(order[i], i) << sharding.shards;
  }
}

TEST(EpochOrderTest, OneShardIsAPermutation) {
  EXPECT_EQ(EpochOrder(3, 4, 100, {.shards = 1, .batch = 10}), EpochPermutation(3, 4, 100));
}

TEST(EpochOrderTest, SeedsDealDifferently) {
  const auto shard = [](uint64_t seed) {
    const std::vector<int64_t> order = EpochOrder(seed, 0, 100, {.shards = 2, .batch = 2});
    std::set<int64_t> samples;
    for (size_t i = 0; i < order.size(); i += 2) samples.insert(order[i]);
    return samples;
  };
  EXPECT_EQ(shard(1), shard(1));
  EXPECT_NE(shard(1), shard(2));
}

// Through a loader: rank 1 of two, with two rows of four.
TEST(EpochOrderTest, ALoaderMeetsItsShardOrEverything) {
  const auto dataset = MakeDataset();
  const auto met = [&](int shards) {
    DataConfig config = Config();
    config.set_shards(shards);
    LoaderOptions options = Options();
    options.batch = 2;
    options.first_row = 2;
    options.global_batch = 4;
    const auto loader = MakeLoader(*dataset, config, options);
    constexpr int64_t kEpochs = 5;
    std::set<int64_t> samples;
    for (int64_t i = 0; i < kEpochs * loader->steps_per_epoch(); ++i) {
      const LoadedBatch batch = loader->Next().value();
      samples.insert(batch.samples.begin(), batch.samples.end());
    }
    return samples.size();
  };
  EXPECT_EQ(met(2), kImages / 2);
  EXPECT_GT(met(1), kImages / 2 + 2);
}

}  // namespace
}  // namespace ringtail
