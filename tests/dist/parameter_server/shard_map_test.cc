#include "dist/parameter_server/shard_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ShardMapTest, AsDrawn) {
  const ShardMap map = DivideIntoShards(std::vector<int64_t>{5, 9, 6, 5, 7}, 2);
  EXPECT_THAT(map.parameters[0], ElementsAre(0, 1));
  EXPECT_THAT(map.parameters[1], ElementsAre(2, 3, 4));
  EXPECT_THAT(map.bytes, ElementsAre(14, 18));
  EXPECT_THAT(map.shard_of, ElementsAre(0, 0, 1, 1, 1));
}

TEST(ShardMapTest, MoreShardsThanParametersLeaveSomeEmpty) {
  const ShardMap map = DivideIntoShards(std::vector<int64_t>{3, 4}, 4);
  EXPECT_THAT(map.bytes, ElementsAre(4, 3, 0, 0));
  EXPECT_THAT(map.parameters[3], IsEmpty());
  EXPECT_THAT(DivideIntoShards({}, 2).bytes, ElementsAre(0, 0));
}

TEST(ShardMapTest, EveryParameterIsOnOneShardAndTheLargestIsSmall) {
  for (uint64_t number = 0; number < 1000; ++number) {
    Rng rng(RngKey(number).With(kTestStream));
    std::vector<int64_t> bytes(1 + rng.Below(60));
    for (int64_t& b : bytes) b = static_cast<int64_t>(4 * rng.Below(10'000));
    const int shards = static_cast<int>(1 + rng.Below(8));
    const ShardMap map = DivideIntoShards(bytes, shards);
    std::vector<int> seen(bytes.size());
    for (int shard = 0; shard < shards; ++shard) {
      int64_t sum = 0;
      EXPECT_TRUE(std::ranges::is_sorted(map.parameters[shard]));
      for (const size_t parameter : map.parameters[shard]) {
        ++seen[parameter];
        sum += bytes[parameter];
        EXPECT_EQ(map.shard_of[parameter], shard);
      }
      EXPECT_EQ(sum, map.bytes[shard]);
    }
    EXPECT_THAT(seen, testing::Each(1));
    const int64_t total = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    EXPECT_LE(std::ranges::max(map.bytes), total / shards + 1 + std::ranges::max(bytes));
    EXPECT_EQ(DivideIntoShards(bytes, shards).shard_of, map.shard_of);
  }
}

}  // namespace
}  // namespace ringtail
