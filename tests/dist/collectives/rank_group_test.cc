// RankGroup: numbering, and the hosts of its members.
#include "dist/collectives/rank_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using ::testing::ElementsAre;

TEST(RankGroup, NumbersItsMembersInTheOrderGiven) {
  const RankGroup group({4, 1, 7});
  EXPECT_EQ(group.size(), 3);
  EXPECT_THAT(group.ranks(), ElementsAre(4, 1, 7));
  EXPECT_EQ(group.MemberOf(4), 0);
  EXPECT_EQ(group.MemberOf(7), 2);
  EXPECT_EQ(group.MemberOf(0), std::nullopt);
  EXPECT_THAT(RankGroup::World(3).ranks(), ElementsAre(0, 1, 2));
}

TEST(RankGroup, NumbersHostsInTheOrderOfTheirFirstMembers) {
  const Topology world{.host_of_rank = {0, 0, 1, 1, 2}};
  EXPECT_THAT(RankGroup({4, 2, 3, 0}).Within(world).host_of_rank, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(RankGroup::World(5).Within(world).host_of_rank, ElementsAre(0, 0, 1, 1, 2));
}

TEST(RankGroupDeathTest, HasEachRankOnce) {
  EXPECT_DEATH(RankGroup({1, 2, 1}), "names one of them twice");
  EXPECT_DEATH(RankGroup(std::vector<int>()), "at least one rank");
  EXPECT_DEATH(RankGroup({0, 3}).Within(Topology::Blocks(3, 1)),
               "has rank 3, and the world 3 ranks");
}

}  // namespace
}  // namespace ringtail
