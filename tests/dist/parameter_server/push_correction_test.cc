// Corrections as a shard makes them: whose weights are compared, and from when on.
#include "dist/parameter_server/push_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"
#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/shard_story.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using Config = AsynchronousConfig;

AsynchronousRule Constant(double lambda) {
  AsynchronousRule rule = PublishedRule(Config::DC_CONSTANT);
  rule.compensation.strength = lambda;
  return rule;
}

// The three pushes of compensation.h, where the third is not late and must stay as it is.
TEST(PushCorrectionTest, ComparesWithWhatTheWorkerPulled) {
  ShardStory story(Constant(1));
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  EXPECT_EQ(story.weights()[0], 0.5F);
  story.Push(1, 1);
  EXPECT_EQ(story.weights()[0], 0.25F);
  ASSERT_TRUE(story.Pull(1));
  story.Push(1, 2);
  EXPECT_EQ(story.weights()[0], -0.75F);
  // Worker 2 is 3 updates late: 2 + 4 * (-0.75 - 1) = -5
  EXPECT_EQ(story.Push(2, 2).staleness, 3);
  EXPECT_EQ(story.weights()[0], -0.75F + 0.5F * 5);
}

TEST(PushCorrectionTest, TheLimitKeepsASign) {
  AsynchronousRule rule = Constant(1);
  rule.compensation.limit = 1;
  ShardStory story(rule);
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 8);
  EXPECT_EQ(story.weights()[0], -3);
  story.Push(1, 2);  // 2 * -4 = -8 is limited to -1: nothing of it is left
  EXPECT_EQ(story.weights()[0], -3);
}

TEST(PushCorrectionTest, BeginsAtItsEpoch) {
  AsynchronousRule rule = Constant(1);
  rule.compensation.start_epoch = 1.5;
  ShardStory story(rule, {1}, 0.5F, {.images_per_epoch = 2});
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  story.Push(1, 1);  // after 1 of 2 images
  EXPECT_EQ(story.weights()[0], 0);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);  // after 2; not late
  EXPECT_EQ(story.weights()[0], -0.5F);
  story.Push(1, 1);  // after 3: 1 - 0.5
  EXPECT_EQ(story.weights()[0], -0.75F);
}

// Each worker's mean squares are its own: what worker 0 pushes does not change what becomes of
// worker 1's push.
TEST(PushCorrectionTest, MeanSquaresAreEachWorkersOwn) {
  AsynchronousRule rule = PublishedRule(Config::DC_ADAPTIVE);
  rule.compensation.decay = 0.75;
  ShardStory story(rule);
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  ASSERT_EQ(story.weights()[0], 0.5F);
  story.Push(1, 1);  // MS = 0.25, lambda = 4: 1 + 4 * -0.5
  EXPECT_THAT(story.weights(), ElementsAre(FloatNear(0.5F - 0.5F * (1 - 2), 1e-5F)));
}

// The first update moves the weight by 1, which is then the mean step; the late push of a distance
// of 1 counts half.
TEST(PushCorrectionTest, GapsAreMeasuredInMeanSteps) {
  ShardStory story(PublishedRule(Config::GAP_AWARE));
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 2);
  EXPECT_EQ(story.weights()[0], 0);
  story.Push(1, 2);
  EXPECT_EQ(story.weights()[0], -0.5F);
  // Mean of the steps 1 and 0.5; distance 1.5: 3 / (1 + 2).
  story.Push(2, 3);
  EXPECT_EQ(story.weights()[0], -1);
}

// One worker: the server's velocity and look-ahead are Nesterov's, x - r (m v + g) at what is given
// out.
TEST(PushCorrectionTest, DanaGivesOutLookAheads) {
  ShardStory story(PublishedRule(Config::DANA), {1}, 0.125F);
  story.Join(1);
  double expected = 1, velocity = 0;
  for (uint64_t step = 0; step < 30; ++step) {
    ASSERT_TRUE(story.Pull(0));
    EXPECT_NEAR(story.pulled(0)[0], expected, 1e-5);
    const float g = story.pulled(0)[0] - 3;
    story.Push(0, {2 * g}, 2);
    velocity = 0.9 * velocity + g;
    expected -= 0.125 * (0.9 * velocity + g);
  }
}

// DANA-Gap-Aware by hand, momentum and rate 0.5: the gap is from the look-ahead that the worker was given to
// the weights now, and what it leaves of the gradient enters the velocity.
TEST(PushCorrectionTest, DanasGapsAreFromLookAheads) {
  AsynchronousRule rule = PublishedRule(Config::DANA);
  rule.compensation.decay = 0.5;
  rule.weight.form = StalenessWeight::Form::kGapAware;
  ShardStory story(rule, {1});
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  EXPECT_EQ(story.weights()[0], 0.5F);
  story.Push(1, 1);  // given 1, a mean step of 0.5 away: velocity 1 / (1 + 1)
  EXPECT_EQ(story.weights()[0], 0.25F);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  EXPECT_EQ(story.pulled(0)[0], 0.25F - 0.5F * 0.5F * 1.5F);
  story.Push(1, 0);  // not late: velocity 0.25
  EXPECT_EQ(story.weights()[0], 0.125F);
  // Given -0.125; the mean step is 0.875 / 3.
  story.Push(0, 1);
  const float velocity = 0.5F + 1 / (1 + 0.25F / (0.875F / 3));
  EXPECT_NEAR(story.weights()[0], 0.125F - 0.5F * velocity, 1e-6);
}

TEST(PushCorrectionTest, WhoIsGoneTakesItsVelocityAlong) {
  ShardStory story(PublishedRule(Config::DANA), {1});
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  ASSERT_TRUE(story.Pull(1));
  EXPECT_FLOAT_EQ(story.pulled(1)[0], 0.5F - 0.5F * 0.9F);
  story.shard().Remove(0);
  ASSERT_TRUE(story.Pull(1));
  EXPECT_EQ(story.pulled(1)[0], 0.5F);
}

// Two versions for three workers: the oldest gives way, and its push is refused, late as it is.
TEST(PushCorrectionTest, APushWhoseVersionIsGoneIsRefused) {
  ShardStory story(Constant(1), {1}, 0.5F, {.versions = 2});
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 0);
  ASSERT_TRUE(story.Pull(0));
  story.Push(1, 0);
  ASSERT_TRUE(story.Pull(1));
  const PushResult refused = story.Push(2, 1);
  EXPECT_EQ(refused.outcome, PushOutcome::kRefused);
  EXPECT_EQ(refused.reason, RefusalReason::kVersionGone);
  EXPECT_EQ(refused.staleness, 2);
  EXPECT_EQ(story.shard().versions_given_way(), 1);
  ASSERT_TRUE(story.Pull(2));
  EXPECT_EQ(story.Push(2, 1).outcome, PushOutcome::kApplied);
}

// Pulled ahead while nothing was updated: both pushes were computed with version 0.
TEST(PushCorrectionTest, AVersionThatWasPulledTwiceIsThereForTwoPushes) {
  ShardStory story(Constant(1));
  story.Join(2);
  for (const int worker : {0, 0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  story.Push(1, 1);
  EXPECT_EQ(story.weights()[0], 0.25F);  // the second: 1 + 1 * (0.5 - 1) = 0.5
  // 2 updates late: 2 + 4 * (0.25 - 1) = -1
  EXPECT_EQ(story.Push(0, 2).outcome, PushOutcome::kApplied);
  EXPECT_EQ(story.weights()[0], 0.25F + 0.5F);
}

// A dead worker's version is free for others; a version is free once its push was refused, too.
TEST(PushCorrectionTest, VersionsAreFreedByDeathsAndRefusals) {
  AsynchronousRule rule = Constant(1);
  ShardStory story(rule, {1}, 0.5F, {.versions = 2});
  for (int worker = 0; worker < 50; ++worker) {
    story.shard().Join(worker);
    story.shard().Join(1000 + worker);
    ASSERT_TRUE(story.Pull(worker));
    ASSERT_TRUE(story.Pull(1000 + worker));
    story.Push(worker, std::vector<float>{NAN});
    story.shard().Remove(worker);
    EXPECT_EQ(story.Push(1000 + worker, 1).outcome, PushOutcome::kApplied);
    ASSERT_TRUE(story.Pull(1000 + worker));
    story.shard().Remove(1000 + worker);
  }
  EXPECT_EQ(story.shard().versions_given_way(), 0);
}

// Large enough for several parts, kept in 16 bits, which hold these weights exactly.
TEST(PushCorrectionTest, SixteenBitsAreEnoughForWeightsThatHaveThem) {
  constexpr size_t kSize = 5000;
  std::vector<float> weights(kSize);
  for (size_t i = 0; i < kSize; ++i) weights[i] = static_cast<float>(i % 128);
  ShardStory floats(Constant(0.5), weights, 0.25F);
  ShardStory halves(Constant(0.5), weights, 0.25F, {.format = VersionRing::Format::kBf16});
  for (ShardStory* story : {&floats, &halves}) {
    story->Join(2);
    for (const int worker : {0, 1}) ASSERT_TRUE(story->Pull(worker));
    story->Push(0, std::vector<float>(kSize, 2));
    story->Push(1, std::vector<float>(kSize, 4));
    // 4 + 0.5 * 4 * 4 * -0.5 = 0
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(story->weights()[i], weights[i] - 0.25F * 2) << i;
    }
  }
}

}  // namespace
}  // namespace ringtail
