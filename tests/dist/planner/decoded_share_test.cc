#include "dist/planner/decoded_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace ringtail {
namespace {

TEST(DecodedShareTest, AloneEveryImageOnce) {
  EXPECT_DOUBLE_EQ(DecodedShare(1, 0.5, 1), 1);
  EXPECT_DOUBLE_EQ(DecodedShare(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(DecodedShare(1, 2.5, 1), 1 / 2.5);
  EXPECT_DOUBLE_EQ(DecodedShare(1, 16, 1), 1.0 / 16);
}

TEST(DecodedShareTest, WithoutRoomEverythingAlways) {
  EXPECT_DOUBLE_EQ(DecodedShare(1, 16, 0), 1);
  EXPECT_DOUBLE_EQ(DecodedShare(8, 16, 0), 1);
  EXPECT_DOUBLE_EQ(DecodedShare(1, 5, 0.25), (1 + 4 * 0.75) / 5);
  // Of 8: 1, 7/8, 49/64, then the cache has what it can hold.
  EXPECT_DOUBLE_EQ(DecodedShare(8, 5, 0.25), (1 + 7.0 / 8 + 49.0 / 64 + 2 * 0.75) / 5);
  EXPECT_NEAR(DecodedShare(1024, 1e6, 0.5), 0.5, 0.001);
  EXPECT_NEAR(DecodedShare(1024, 1e6, 1), 1024 / 1e6, 1e-6);
}

// Of a part of the images, each once: as alone with so many.
TEST(DecodedShareTest, ImagesThatAreDealtOnce) {
  EXPECT_DOUBLE_EQ(DecodedShareOfShard(8, 16, 1), 1.0 / 16);
  EXPECT_DOUBLE_EQ(DecodedShareOfShard(8, 16, 1.0 / 8), 1.0 / 16);
  EXPECT_DOUBLE_EQ(DecodedShareOfShard(8, 5, 1.0 / 16), (1 + 4 * 0.5) / 5);
  EXPECT_DOUBLE_EQ(DecodedShareOfShard(8, 5, 0), 1);
}

TEST(DecodedShareTest, AgreesWithImagesThatAreDealt) {
  constexpr int64_t kImages = 20000, kRanks = 8, kEpochs = 6;
  std::mt19937_64 engine(7);
  std::vector<int64_t> order(kImages);
  std::iota(order.begin(), order.end(), 0);
  std::set<int64_t> met;
  int64_t decoded = 0;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::ranges::shuffle(order, engine);
    for (int64_t i = 0; i < kImages; i += kRanks) decoded += met.insert(order[i]).second ? 1 : 0;
  }
  const double share =
      static_cast<double>(decoded) / static_cast<double>(kEpochs * kImages) * kRanks;
  EXPECT_NEAR(DecodedShare(kRanks, kEpochs, 1), share, 0.01);
}

}  // namespace
}  // namespace ringtail
