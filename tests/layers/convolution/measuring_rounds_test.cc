#include "layers/convolution/measuring_rounds.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringtail {
namespace {

using Measurements = std::vector<Measurement>;

TEST(MeasuringRoundsTest, OneSlowCallRulesNoCandidateOutThatIsNearTheBest) {
  EXPECT_TRUE(TakesPart(Measurement{}, 1, 0)) << "never called";
  EXPECT_TRUE(TakesPart({.least = 100}, 1, 1)) << "the first call touches memory";
  EXPECT_TRUE(TakesPart({.least = 2.9}, 1, 2));
  EXPECT_FALSE(TakesPart({.least = 3.1}, 1, 2));
  EXPECT_TRUE(TakesPart({.least = 1.7}, 1, 3));
  EXPECT_FALSE(TakesPart({.least = 1.9}, 1, 3));
  EXPECT_TRUE(TakesPart({.least = 1.2}, 1, 4));
  EXPECT_FALSE(TakesPart({.least = 1.4}, 1, 12));
}

TEST(MeasuringRoundsTest, UndisturbedCandidatesHaveFourRoundsAndEightHundredths) {
  const Measurements quiet = {{.least = 1, .undisturbed = 4}, {.least = 1.1, .undisturbed = 4}};
  EXPECT_FALSE(AreEnough(quiet, 4, 0.9)) << "a slow layer has its minimum";
  EXPECT_TRUE(AreEnough(quiet, 5, 0.09));
  EXPECT_FALSE(AreEnough(quiet, 5, 0.07)) << "fast calls are repeated";
  EXPECT_TRUE(AreEnough(quiet, 13, 0.01));
  EXPECT_TRUE(AreEnough(quiet, 1, 1.1)) << "seconds for a call: one is enough";
}

TEST(MeasuringRoundsTest, DisturbedCandidatesHaveMore) {
  Measurements shared = {{.least = 1, .undisturbed = 4}, {.least = 1.2, .undisturbed = 3}};
  EXPECT_FALSE(AreEnough(shared, 5, 0.09));
  EXPECT_TRUE(AreEnough(shared, 5, 0.31)) << "but not for ever";
  EXPECT_TRUE(AreEnough(shared, 13, 0.09));
  shared[1].undisturbed = 4;
  EXPECT_TRUE(AreEnough(shared, 6, 0.09));
  shared[1] = {.least = 2, .undisturbed = 0};
  EXPECT_TRUE(AreEnough(shared, 6, 0.09)) << "it is out, disturbed or not";
}

}  // namespace
}  // namespace ringtail
