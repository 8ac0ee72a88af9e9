#include "apps/lr_find/rate_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr RateRange kRange = {.from = 1e-5, .to = 1, .steps = 100};

// Adds losses until the curve says that it is enough.
template <typename Loss>
RateCurve CurveOf(const RateRange& range, const Loss& loss) {
  RateCurve curve(range);
  while (curve.Add(loss(RateOfStep(range, std::ssize(curve.points()))))) {
  }
  return curve;
}

TEST(RateCurveTest, RatesRiseByAConstantFactor) {
  EXPECT_DOUBLE_EQ(RateOfStep(kRange, 0), 1e-5);
  EXPECT_NEAR(RateOfStep(kRange, 20), 1e-4, 1e-16);
  EXPECT_NEAR(RateOfStep(kRange, 100), 1, 1e-12);
}

TEST(RateCurveTest, SmoothsAsAMovingMeanWithoutBiasToZero) {
  RateCurve curve(kRange);
  curve.Add(2);
  curve.Add(1);
  curve.Add(4);
  ASSERT_EQ(curve.points().size(), 3U);
  EXPECT_NEAR(curve.points()[0].smoothed, 2, 1e-12);
  EXPECT_NEAR(curve.points()[1].smoothed, (0.98 * 2 + 1) / 1.98, 1e-12);
  EXPECT_NEAR(curve.points()[2].smoothed, (0.98 * 0.98 * 2 + 0.98 + 4) / (1 + 0.98 + 0.98 * 0.98),
              1e-12);
  EXPECT_EQ(curve.points()[2].loss, 4);
}

TEST(RateCurveTest, EndsWithTheRangeOrWhereTheLossRunsAway) {
  const RateCurve whole = CurveOf(kRange, [](double) { return 1.0; });
  EXPECT_EQ(whole.points().size(), 100U);
  EXPECT_FALSE(whole.diverged());

  RateCurve jumps(kRange);
  EXPECT_TRUE(jumps.Add(1));
  EXPECT_TRUE(jumps.Add(6.9)) << "a mean of 3.98 is below four times the lowest";
  EXPECT_FALSE(jumps.Add(100));
  EXPECT_TRUE(jumps.diverged());

  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    RateCurve broken(kRange);
    EXPECT_TRUE(broken.Add(1));
    EXPECT_FALSE(broken.Add(bad));
    EXPECT_TRUE(broken.diverged());
    EXPECT_EQ(broken.points().size(), 1U) << "no point of it";
  }
}

// Flat, then down along a slope from 1e-3 to 1e-1, then up.
double Valley(double rate) {
  const double x = std::log10(rate);
  if (x < -3) return 1;
  return x < -1 ? 1 - 0.3 * (x + 3) : 0.4 + 3 * (x + 1);
}

std::vector<RatePoint> Unsmoothed(const RateRange& range, double (*loss)(double)) {
  std::vector<RatePoint> points;
  for (int64_t i = 0; i < range.steps; ++i) {
    const double rate = RateOfStep(range, i);
    points.push_back({.rate = rate, .loss = loss(rate), .smoothed = loss(rate)});
  }
  return points;
}

// Falling: points 40 (the last that is flat) to 80, of which 10 are cut in front: 41 points that end at
// index 70. Valley: 70 - 41 + 13 + 6 = 48, point 58.
TEST(SuggestRateTest, TheValleyIsTheMiddleOfTheDescent) {
  const RateSuggestion found = SuggestRate(kRange, Unsmoothed(kRange, Valley)).value();
  EXPECT_NEAR(std::log10(found.valley), std::log10(RateOfStep(kRange, 58)), 0.051);
  EXPECT_GE(found.steepest, 0.9e-3);
  EXPECT_LE(found.steepest, 1e-1);
  EXPECT_NEAR(found.fall, 0.6, 0.02);
}

TEST(SuggestRateTest, TheSteepestIsWhereTheLossFallsMost) {
  const auto cliff = [](double rate) {
    return 1 / (1 + std::exp(8 * (std::log10(rate) + 2)));  // steepest at 1e-2
  };
  const RateSuggestion found = SuggestRate(kRange, Unsmoothed(kRange, +cliff)).value();
  EXPECT_NEAR(std::log10(found.steepest), -2, 0.06);
}

TEST(SuggestRateTest, ALossThatOnlyRisesHasNone) {
  const auto rises = [](double rate) { return 1 + rate; };
  const Status status = SuggestRate(kRange, Unsmoothed(kRange, +rises)).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("the loss falls at no rate from 1e-05 to 0.89"));
}

TEST(SuggestRateTest, TooFewPointsHaveNone) {
  const RateCurve curve =
      CurveOf(kRange, [](double rate) { return rate < 0.95e-4 ? 1 : 1e6 * rate; });
  EXPECT_TRUE(curve.diverged());
  EXPECT_LT(curve.points().size(), 30U);
  const Status status = SuggestRate(kRange, curve.points()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("the loss ran away after 21 steps"));
  EXPECT_THAT(status.message(), HasSubstr("--from 1e-07"));
}

TEST(DrawCurveTest, GoesFromTheFirstRateToTheLast) {
  const std::string drawn = DrawCurve(Unsmoothed(kRange, Valley), 40, 8);
  EXPECT_EQ(std::ranges::count(drawn, '\n'), 10);
  std::vector<std::string> lines;
  for (size_t at = 0; at < drawn.size(); at = drawn.find('\n', at) + 1) {
    lines.push_back(drawn.substr(at, drawn.find('\n', at) - at));
  }
  EXPECT_THAT(lines[7], HasSubstr("0.4 |")) << drawn;
  EXPECT_THAT(lines[0], testing::EndsWith("*")) << drawn << "the rise at the end, cut at 1.5";
  EXPECT_THAT(lines[0], HasSubstr("1.5 |")) << drawn;
  EXPECT_THAT(lines[9], testing::EndsWith("0.89"));
  EXPECT_THAT(lines[9], HasSubstr(" 1e-05 "));
  EXPECT_EQ(DrawCurve({}, 40, 8), "");
}

}  // namespace
}  // namespace ringtail
