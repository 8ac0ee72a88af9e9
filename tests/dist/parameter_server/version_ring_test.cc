#include "dist/parameter_server/version_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ringtail {
namespace {

using testing::ElementsAre;
using Format = VersionRing::Format;

std::vector<float> WeightsOf(int64_t version) {
  const auto v = static_cast<float>(version);
  return {v, v + 0.5F, -v};
}

std::vector<float> Read(const VersionRing& ring, int64_t version) {
  std::vector<float> out(3);
  ring.Read(version, 0, out);
  return out;
}

// The drawing of the header.
TEST(VersionRingTest, TheOldestGivesWay) {
  VersionRing ring(3, 3, Format::kFloat);
  ring.Keep(7, WeightsOf(7));
  ring.Keep(8, WeightsOf(8));
  ring.Release(7);
  EXPECT_FALSE(ring.Has(7));
  ring.Keep(9, WeightsOf(9));
  ring.Keep(10, WeightsOf(10));
  EXPECT_EQ(ring.given_way(), 0);
  EXPECT_EQ(Read(ring, 8), WeightsOf(8));
  ring.Keep(11, WeightsOf(11));
  EXPECT_FALSE(ring.Has(8));
  EXPECT_EQ(ring.given_way(), 1);
  for (const int64_t version : {9, 10, 11}) EXPECT_EQ(Read(ring, version), WeightsOf(version));
  ring.Release(8);  // its push comes at last
  EXPECT_TRUE(ring.Has(9));
}

TEST(VersionRingTest, AVersionStaysUntilAllWhoTookItHavePushed) {
  VersionRing ring(3, 2, Format::kFloat);
  ring.Keep(4, WeightsOf(4));
  ring.Keep(4, WeightsOf(4));
  ring.Release(4);
  EXPECT_TRUE(ring.Has(4));
  ring.Release(4);
  EXPECT_FALSE(ring.Has(4));
}

TEST(VersionRingTest, MemoryIsThatOfItsSlots) {
  VersionRing floats(3, 2, Format::kFloat), halves(3, 2, Format::kBf16);
  EXPECT_EQ(floats.bytes(), 0);
  for (int64_t version = 0; version < 1000; ++version) {  // as by a thousand workers
    floats.Keep(version, WeightsOf(version));
    halves.Keep(version, WeightsOf(version));
  }
  EXPECT_EQ(floats.bytes(), 2 * 3 * 4);
  EXPECT_EQ(halves.bytes(), 2 * 3 * 2);
  EXPECT_EQ(floats.given_way(), 998);
  EXPECT_EQ(Read(floats, 998), WeightsOf(998));
}

TEST(VersionRingTest, SixteenBitsAreTheNearest) {
  VersionRing ring(3, 1, Format::kBf16);
  const std::vector<float> weights = {1.5F, 1 + 1.0F / 512, -3.140625F};
  ring.Keep(0, weights);
  EXPECT_THAT(Read(ring, 0), ElementsAre(1.5F, 1, -3.140625F));
  std::vector<float> part(1);
  ring.Read(0, 2, part);
  EXPECT_THAT(part, ElementsAre(-3.140625F));
}

// Seven workers of speed 1 and one of 1/5: its push is 35 updates late, and yet its version is
// there with a slot for each worker, while the last eight versions would have been forgotten.
TEST(VersionRingTest, ASlotForEachWorkerIsEnoughForASlowOne) {
  constexpr int kWorkers = 8;
  VersionRing ring(3, kWorkers, Format::kFloat);
  std::vector<int64_t> base(kWorkers, 0);
  for (int worker = 0; worker < kWorkers; ++worker) ring.Keep(0, WeightsOf(0));
  for (int64_t version = 0; version < 35; ++version) {
    const auto worker = static_cast<size_t>(1 + version % 7);
    ring.Release(base[worker]);
    base[worker] = version + 1;
    ring.Keep(version + 1, WeightsOf(version + 1));
  }
  EXPECT_TRUE(ring.Has(0));
  EXPECT_EQ(ring.given_way(), 0);
}

}  // namespace
}  // namespace ringtail
