#include "dist/collectives/plan.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(EvenPart, PartsFollowEachOtherAndDifferByAtMostOne) {
  for (const int64_t count : {0, 1, 6, 7, 100}) {
    for (const int64_t parts : {1, 2, 7, 33}) {
      int64_t end = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const ElementRange part = EvenPart(count, parts, i);
        EXPECT_EQ(part.offset, end);
        EXPECT_EQ(part.count, count / parts + (i < count % parts ? 1 : 0));
        end = part.end();
      }
      EXPECT_EQ(end, count);
    }
  }
}

TEST(EvenPart, LargeCountsDoNotOverflow) {
  const int64_t count = int64_t{1} << 40;
  EXPECT_EQ(EvenPart(count, 3, 2).end(), count);
}

constexpr ElementRange kLower = {.offset = 0, .count = 3}, kUpper = {.offset = 3, .count = 2};
constexpr ElementRange kNothing = {.offset = 3, .count = 0};

TEST(Plan, LeavesOutWhatHasNoElements) {
  Plan plan;
  plan.AddRound({Step::Send(1, kNothing), Step::ReceiveReduce(1, kUpper)});
  plan.AddRound({Step::Send(2, kNothing), Step::ReceiveCopy(1, kNothing)});
  plan.AddRound({});
  EXPECT_EQ(plan, (Plan{{Round{{Step::ReceiveReduce(1, kUpper)}}}}));
}

TEST(Plan, AppendsRounds) {
  Plan plan, next;
  plan.AddRound({Step::Send(1, kLower)});
  next.AddRound({Step::ReceiveCopy(2, kUpper)});
  plan.Append(next);
  EXPECT_EQ(plan, (Plan{{Round{{Step::Send(1, kLower)}}, Round{{Step::ReceiveCopy(2, kUpper)}}}}));
}

TEST(Plan, PlayedBackwardsSendsWhatItReceivedAndReceivesWhatItSent) {
  Plan reduction;
  reduction.AddRound({Step::ReceiveReduce(1, kLower)});
  reduction.AddRound({Step::Send(2, kLower), Step::ReceiveReduce(2, kUpper)});
  Plan distribution;
  distribution.AddRound({Step::ReceiveCopy(2, kLower), Step::Send(2, kUpper)});
  distribution.AddRound({Step::Send(1, kLower)});
  EXPECT_EQ(Backwards(reduction), distribution);
}

TEST(PlanDeathTest, SaysWhichRankOfWhichWorldWasAskedFor) {
  EXPECT_DEATH(CheckPlanArguments(4, 4, 1), "internal error.*rank 4 is not one of a world of 4");
  EXPECT_DEATH(EvenPart(10, 3, 3), "part 3 of 3 parts of 10 elements");
}

TEST(Plan, OfAGroupNamesRanksOfTheWorld) {
  const std::vector<int> ranks = {4, 7, 9};
  Plan of_group, of_world;
  of_group.AddRound({Step::Send(2, kLower), Step::ReceiveCopy(0, kUpper)});
  of_world.AddRound({Step::Send(9, kLower), Step::ReceiveCopy(4, kUpper)});
  EXPECT_EQ(WithPeers(of_group, ranks), of_world);
}

}  // namespace
}  // namespace ringtail
