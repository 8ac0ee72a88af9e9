#include "dist/collectives/topology.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(Topology, OfBlocksFillsOneHostAfterTheOther) {
  const Topology topology = Topology::Blocks(7, 3);
  EXPECT_EQ(topology.host_of_rank, (std::vector{0, 0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(topology.world(), 7);
  EXPECT_EQ(topology.hosts(), 3);
  EXPECT_EQ(topology.RanksOf(1), (std::vector{3, 4, 5}));
  EXPECT_EQ(topology.RanksOf(2), (std::vector{6}));
}

TEST(Topology, HasLevelsIfSomeRanksShareAHostAndSomeDoNot) {
  EXPECT_TRUE(Topology::Blocks(4, 2).has_levels());
  EXPECT_TRUE(Topology::Blocks(4, 3).has_levels());
  EXPECT_FALSE(Topology::Blocks(4, 4).has_levels());
  EXPECT_FALSE(Topology::Blocks(4, 1).has_levels());
  EXPECT_FALSE(Topology::Blocks(1, 1).has_levels());
  EXPECT_FALSE(Topology{}.has_levels());
}

}  // namespace
}  // namespace ringtail
