#include "apps/trainer/rate_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kImages = 5000;
constexpr double kPeak = 1.4;

// Evaluations as of a run whose rate is too high: issue 23's, from its second epoch on.
std::vector<RateEvidence> Falling() {
  return {{.accuracy = 0.26, .training_loss = 3.9, .rate = kPeak},
          {.accuracy = 0.23, .training_loss = 4.0, .rate = kPeak},
          {.accuracy = 0.20, .training_loss = 4.1, .rate = 0.9 * kPeak}};
}

TEST(RateGuardTest, TwoFallsAtAHighRate) {
  EXPECT_TRUE(RateIsTooHigh(Falling(), kImages, kPeak));
  std::vector<RateEvidence> longer = Falling();
  longer.insert(longer.begin(), {.accuracy = 0.1, .training_loss = 4.5, .rate = 0.5 * kPeak});
  EXPECT_TRUE(RateIsTooHigh(longer, kImages, kPeak));
  std::vector<RateEvidence> measured = Falling();
  measured[0].training_loss = 4.944;
  measured[2].training_loss = 4.776;
  EXPECT_TRUE(RateIsTooHigh(measured, kImages, kPeak));
}

// Each is Falling() but for one thing.
TEST(RateGuardTest, NoFalseAlarms) {
  const auto is_high = [](auto&& change, int64_t images = kImages) {
    std::vector<RateEvidence> evaluations = Falling();
    change(&evaluations);
    return RateIsTooHigh(evaluations, images, kPeak);
  };
  using Evaluations = std::vector<RateEvidence>*;
  EXPECT_FALSE(is_high([](Evaluations e) { e->erase(e->begin()); })) << "one fall";
  EXPECT_FALSE(is_high([](Evaluations e) { (*e)[1].accuracy = 0.19; })) << "rises again";
  EXPECT_FALSE(is_high([](Evaluations e) { (*e)[2].rate = 0.5 * kPeak; })) << "the rate has fallen";
  EXPECT_FALSE(is_high([](Evaluations e) { (*e)[1].rate = 0.3 * kPeak; })) << "it was warming up";
  EXPECT_FALSE(is_high([](Evaluations e) { (*e)[2].training_loss = 3.0; })) << "learns by heart";
  EXPECT_FALSE(is_high([](Evaluations) {}, /*images=*/100)) << "chance explains it";
}

// What the guard says after an evaluation that follows steps of this loss.
std::string After(RateGuard* guard, double loss, double rate, double accuracy) {
  constexpr int kSteps = 10;
  for (int i = 0; i < kSteps; ++i) guard->AddStep(loss + 0.1 * (i % 2 == 0 ? 1 : -1), rate);
  return guard->AddEvaluation(accuracy, kImages, /*configured=*/0.7);
}

TEST(RateGuardTest, WarnsOnceAndNamesFlagAndValue) {
  RateGuard guard;
  EXPECT_EQ(After(&guard, 4.5, 0.5 * kPeak, 0.15), "");
  for (const RateEvidence& e : Falling()) {
    const std::string warning = After(&guard, e.training_loss, e.rate, e.accuracy);
    if (e.accuracy > 0.20) {
      EXPECT_EQ(warning, "");
    } else {
      EXPECT_THAT(warning, AllOf(HasSubstr("from 26.0 to 20.0 %"),
                                 HasSubstr("--set optim.learning_rate=0.17")));
    }
  }
  EXPECT_EQ(After(&guard, 4.2, kPeak, 0.15), "");
}

TEST(RateGuardTest, LearningBringsNoWarning) {
  RateGuard guard;
  for (int epoch = 0; epoch < 12; ++epoch) {
    EXPECT_EQ(After(&guard, 4.5 - 0.2 * epoch, kPeak, 0.1 + 0.03 * epoch), "");
  }
}

}  // namespace
}  // namespace ringtail
