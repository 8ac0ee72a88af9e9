#include "dist/parameter_server/momentum_correction.h"

#include <gtest/gtest.h>

#include "dist/parameter_server/presets.h"

namespace ringtail {
namespace {

// The table of the header.
TEST(MomentumCorrectionTest, AsWorkedByHand) {
  EXPECT_NEAR(ExplicitMomentum(0.9, 1), 0.9, 1e-12);
  EXPECT_NEAR(ExplicitMomentum(0.9, 2), 0.8, 1e-12);
  EXPECT_NEAR(ExplicitMomentum(0.9, 4), 0.6, 1e-12);
  EXPECT_NEAR(ExplicitMomentum(0.9, 8), 0.2, 1e-12);
  EXPECT_NEAR(ExplicitMomentum(0.9, 10), 0, 1e-12);
  EXPECT_EQ(ExplicitMomentum(0.9, 16), 0);
  EXPECT_NEAR(ExplicitMomentum(0.99, 16), 0.84, 1e-12);
  EXPECT_EQ(ExplicitMomentum(0, 3), 0);
}

// m_e with 1 - 1/P of asynchrony on top is the momentum that is wanted.
TEST(MomentumCorrectionTest, TogetherTheyAreWhatIsWanted) {
  for (const double wanted : {0.5, 0.9, 0.99}) {
    for (double under_way = 1; under_way <= 1 / (1 - wanted); under_way += 0.5) {
      const double explicit_momentum = ExplicitMomentum(wanted, under_way);
      EXPECT_NEAR(1 - (1 - explicit_momentum) / under_way, wanted, 1e-12);
    }
  }
}

TEST(MomentumCorrectionTest, GroupsAreFewerThanWorkers) {
  const auto under_way = [](AsynchronousConfig::Rule rule) {
    return PushesUnderWay(PublishedRule(rule), 8, /*ahead=*/false);
  };
  EXPECT_EQ(under_way(AsynchronousConfig::SYNCHRONOUS), 1);
  EXPECT_EQ(under_way(AsynchronousConfig::BACKUP_WORKERS), 1);
  EXPECT_EQ(under_way(AsynchronousConfig::ASYNCHRONOUS), 8);
  AsynchronousRule rule = PublishedRule(AsynchronousConfig::SOFT_SYNC);
  rule.grouping.splits = 3;  // 2 pushes an update
  EXPECT_EQ(PushesUnderWay(rule, 8, false), 4);
  rule.grouping = {.pushes = 20};
  EXPECT_EQ(PushesUnderWay(rule, 8, false), 1);
}

TEST(MomentumCorrectionTest, WhoPullsAheadHasTwoUnderWay) {
  const auto under_way = [](AsynchronousConfig::Rule rule, int workers) {
    return PushesUnderWay(PublishedRule(rule), workers, /*ahead=*/true);
  };
  EXPECT_EQ(under_way(AsynchronousConfig::SYNCHRONOUS, 8), 1);
  EXPECT_EQ(under_way(AsynchronousConfig::ASYNCHRONOUS, 8), 16);
  EXPECT_EQ(under_way(AsynchronousConfig::ASYNCHRONOUS, 1), 2);
  EXPECT_EQ(under_way(AsynchronousConfig::SOFT_SYNC, 8), 2) << "8 pushes an update";
}

}  // namespace
}  // namespace ringtail
