// The rules, each by stories of a few pushes.
#include "dist/parameter_server/server_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "core/random.h"
#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/shard_story.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Config = AsynchronousConfig;

std::vector<float> RandomGradient(uint64_t number, size_t size) {
  Rng rng(RngKey(number).With(kTestStream));
  std::vector<float> gradient(size);
  for (float& g : gradient) g = rng.Normal();
  return gradient;
}

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// One worker, and every rule whose weight is 1 without staleness: the bits of plain SGD.
TEST(ServerShardTest, OneWorkerIsPlainSgd) {
  constexpr size_t kSize = 37;
  constexpr int64_t kImages = 3;
  for (const auto rule : {Config::SYNCHRONOUS, Config::ASYNCHRONOUS, Config::SOFT_SYNC,
                          Config::STALE_SYNC, Config::DC_CONSTANT, Config::DC_ADAPTIVE,
                          Config::RINGMASTER, Config::GAP_AWARE, Config::BACKUP_WORKERS}) {
    ShardStory story(PublishedRule(rule), std::vector<float>(kSize, 1), 0.1F);
    story.Join(1);
    std::vector<float> expected(kSize, 1);
    const auto scale = static_cast<float>(1.0 / kImages);
    for (uint64_t step = 0; step < 20; ++step) {
      ASSERT_TRUE(story.Pull(0));
      EXPECT_EQ(Bits(story.pulled(0)), Bits(expected));
      const std::vector<float> gradient = RandomGradient(step, kSize);
      EXPECT_EQ(story.Push(0, gradient, kImages).outcome, PushOutcome::kApplied);
      for (size_t i = 0; i < kSize; ++i) expected[i] -= 0.1F * (scale * gradient[i]);
    }
    EXPECT_EQ(Bits(story.weights()), Bits(expected)) << Config::Rule_Name(rule);
    EXPECT_EQ(story.shard().images(), 20 * kImages);
  }
}

// In whatever order they arrive, gradients are added in the order of the workers.
TEST(ServerShardTest, SynchronousIsTheSumInTheOrderOfTheWorkers) {
  constexpr size_t kSize = 21;
  std::vector<float> expected(kSize, 1);
  std::vector<std::vector<float>> gradients;
  for (uint64_t worker = 0; worker < 3; ++worker) {
    gradients.push_back(RandomGradient(worker, kSize));
  }
  const auto scale = static_cast<float>(1.0 / 6);
  for (size_t i = 0; i < kSize; ++i) {
    expected[i] -= 0.5F * (scale * ((gradients[0][i] + gradients[1][i]) + gradients[2][i]));
  }
  for (const auto& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    ShardStory story(PublishedRule(Config::SYNCHRONOUS), std::vector<float>(kSize, 1));
    story.Join(3);
    for (const int worker : order) ASSERT_TRUE(story.Pull(worker));
    for (int i = 0; i < 3; ++i) {
      const int worker = order[i];
      const PushResult result =
          story.Push(worker, gradients[worker], worker + 1);  // 1, 2, 3 images
      EXPECT_EQ(result.outcome, i < 2 ? PushOutcome::kAccumulated : PushOutcome::kApplied);
      EXPECT_EQ(story.Pull(worker), i == 2);
    }
    EXPECT_EQ(Bits(story.weights()), Bits(expected));
    EXPECT_THAT(story.shard().TakeReleased(),
                ElementsAre(std::min(order[0], order[1]), std::max(order[0], order[1])));
    EXPECT_THAT(story.shard().TakeReleased(), IsEmpty());
    EXPECT_EQ(story.updates()[0].pushes, 3);
    EXPECT_EQ(story.updates()[0].images, 6);
  }
}

// Who dies holds up no one: what it pushed stays, what it has not is not waited for.
TEST(ServerShardTest, ADeathCompletesASynchronousGroup) {
  ShardStory story(PublishedRule(Config::SYNCHRONOUS));
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  story.shard().Remove(0);
  EXPECT_EQ(story.Push(1, 2).outcome, PushOutcome::kAccumulated);  // 2 has yet to answer
  EXPECT_FALSE(story.Pull(1));
  story.shard().Remove(2);
  EXPECT_EQ(story.shard().version(), 1);
  EXPECT_EQ(story.weights()[0], 1 - 0.5F * 3 / 2);
  EXPECT_THAT(story.shard().TakeReleased(), ElementsAre(1));
  EXPECT_TRUE(story.Pull(1));
}

TEST(ServerShardTest, SoftSyncMakesAnUpdateOfEachPartOfTheWorkers) {
  AsynchronousRule rule = PublishedRule(Config::SOFT_SYNC);
  rule.grouping.splits = 2;  // 2 pushes of 4 workers
  ShardStory story(rule);
  story.Join(4);
  for (int worker = 0; worker < 4; ++worker) ASSERT_TRUE(story.Pull(worker));
  EXPECT_EQ(story.Push(3, 1).outcome, PushOutcome::kAccumulated);
  EXPECT_TRUE(story.Pull(3));  // no one waits, and version 0 it is again
  EXPECT_EQ(story.Push(3, 2).outcome, PushOutcome::kApplied);
  EXPECT_EQ(story.weights()[0], 1 - 0.5F * (1 + 2) / 2);  // -0.25 + 0.5
  for (const int worker : {0, 1, 2}) story.Push(worker, 0);
  ASSERT_EQ(story.shard().version(), 2);
  // tau is 2 for 1 group, whose other push has tau 0.
  ShardStory weighted(rule);
  weighted.Join(4);
  for (int worker = 0; worker < 4; ++worker) ASSERT_TRUE(weighted.Pull(worker));
  for (int i = 0; i < 4; ++i) weighted.Push(0, 0.0F);
  ASSERT_EQ(weighted.shard().version(), 2);
  EXPECT_EQ(weighted.Push(1, 4).staleness, 2);
  ASSERT_TRUE(weighted.Pull(2));
  EXPECT_EQ(weighted.Push(2, 4).staleness, 0);
  EXPECT_EQ(weighted.weights()[0], 1 - 0.5F * (4 * 0.5F + 4) / 2);
}

TEST(ServerShardTest, TheLastGroupIsAppliedWithItsOwnCount) {
  ShardStory story({.grouping = {.pushes = 4}});
  story.Join(2);
  EXPECT_FALSE(story.shard().Finish());
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, std::vector<float>{2}, 3);
  story.Push(1, std::vector<float>{4}, 1);
  EXPECT_EQ(story.weights()[0], 1);
  EXPECT_TRUE(story.shard().Finish());
  EXPECT_EQ(story.weights()[0], 1 - 0.5F * (2 + 4) / 4);
  EXPECT_EQ(story.updates()[0].pushes, 2);
  EXPECT_EQ(story.shard().images(), 4);
  EXPECT_FALSE(story.shard().Finish());
}

TEST(ServerShardTest, AStaleSynchronousWorkerWaitsAtTheBound) {
  AsynchronousRule rule = PublishedRule(Config::STALE_SYNC);
  ShardStory story(rule);
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(story.Pull(0));
    EXPECT_EQ(story.Push(0, 0.0F).outcome, PushOutcome::kApplied);
  }
  EXPECT_FALSE(story.Pull(0));  // 4 ahead of the slowest
  story.Push(1, 0);
  EXPECT_THAT(story.shard().TakeReleased(), IsEmpty());
  EXPECT_THAT(story.shard().clocks().Slowest(), ElementsAre(2));
  const PushResult late = story.Push(2, 0);
  EXPECT_EQ(late.staleness, 5);
  EXPECT_THAT(story.shard().TakeReleased(), ElementsAre(0));
  ASSERT_TRUE(story.Pull(0));
  story.Push(0, 0);
  EXPECT_FALSE(story.Pull(0));
  story.shard().Join(3);  // at the clock of the slowest, so that it holds up no one more
  story.shard().Remove(1);
  story.shard().Remove(2);
  EXPECT_THAT(story.shard().TakeReleased(), IsEmpty());
  story.shard().Remove(3);
  EXPECT_THAT(story.shard().TakeReleased(), ElementsAre(0));
}

TEST(ServerShardTest, RingmasterThrowsAwayWhatIsTooOld) {
  AsynchronousRule rule = PublishedRule(Config::RINGMASTER);
  rule.admission.discard_after = 2;
  ShardStory story(rule);
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 0);
  EXPECT_EQ(story.Push(1, 1).outcome, PushOutcome::kApplied);  // tau 1
  ASSERT_TRUE(story.Pull(1));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(story.Pull(0));
    story.Push(0, 0);
  }
  const std::vector<float> before = story.weights();
  const PushResult late = story.Push(1, 1);
  EXPECT_EQ(late.outcome, PushOutcome::kRefused);
  EXPECT_EQ(late.reason, RefusalReason::kTooOld);
  EXPECT_EQ(late.staleness, 2);
  EXPECT_EQ(story.weights(), before);
  EXPECT_EQ(story.shard().refused(RefusalReason::kTooOld), 1);
  EXPECT_EQ(story.shard().version(), 4);
}

// Two of three make the update; the third is late, is refused, and continues with them.
TEST(ServerShardTest, BackupWorkersAreNotWaitedFor) {
  ShardStory story(PublishedRule(Config::BACKUP_WORKERS));
  story.Join(3);
  for (const int worker : {0, 1, 2}) ASSERT_TRUE(story.Pull(worker));
  EXPECT_EQ(story.Push(2, 2).outcome, PushOutcome::kAccumulated);
  EXPECT_FALSE(story.Pull(2));
  EXPECT_EQ(story.Push(0, 1).outcome, PushOutcome::kApplied);
  EXPECT_EQ(story.weights()[0], 1 - 0.5F * 3 / 2);
  EXPECT_TRUE(story.Pull(0));
  EXPECT_TRUE(story.Pull(2));
  story.Push(0, 0);
  EXPECT_EQ(story.Push(1, 1).reason, RefusalReason::kTooOld);
  EXPECT_TRUE(story.Pull(1));
  EXPECT_EQ(story.Push(1, 0).outcome, PushOutcome::kApplied);  // of version 1, with worker 0's
  EXPECT_EQ(story.shard().version(), 2);
}

TEST(ServerShardTest, WhatIsNotFiniteIsRefusedAndCounted) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLargest = std::numeric_limits<float>::max();
  ShardStory story(PublishedRule(Config::ASYNCHRONOUS), {1, 1});
  story.Join(1);
  for (const auto& gradient :
       {std::vector<float>{0, kNan}, {kInfinity, 0}, {-kInfinity, kInfinity}}) {
    ASSERT_TRUE(story.Pull(0));
    const PushResult result = story.Push(0, gradient);
    EXPECT_EQ(result.outcome, PushOutcome::kRefused);
    EXPECT_EQ(result.reason, RefusalReason::kNotFinite);
  }
  EXPECT_EQ(story.shard().refused(RefusalReason::kNotFinite), 3);
  EXPECT_EQ(story.shard().version(), 0);
  EXPECT_THAT(story.weights(), ElementsAre(1, 1));
  EXPECT_EQ(story.Push(0, {kLargest, 0}).outcome, PushOutcome::kApplied);
  const PushResult told = story.shard().Push({.worker = 0,
                                              .base_version = 0,
                                              .images = 1,
                                              .gradient = std::vector<float>{0, 0},
                                              .finite = false});
  EXPECT_EQ(told.reason, RefusalReason::kNotFinite);
}

// A refused push is an answer: all others' gradients are applied, and no one waits for ever.
TEST(ServerShardTest, ASynchronousGroupDoesNotWaitForWhatWasRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  ShardStory story(PublishedRule(Config::SYNCHRONOUS));
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(0, 1);
  EXPECT_EQ(story.Push(1, kNan).outcome, PushOutcome::kRefused);
  EXPECT_EQ(story.weights()[0], 0.5F);
  for (const int worker : {0, 1}) {
    ASSERT_TRUE(story.Pull(worker));
    EXPECT_EQ(story.base(worker), 1);
  }
  for (const int worker : {0, 1}) story.Push(worker, kNan);  // all of them: nothing changes
  EXPECT_EQ(story.shard().version(), 1);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.Push(1, 1);
  EXPECT_EQ(story.Push(0, 1).outcome, PushOutcome::kApplied);
  EXPECT_EQ(story.weights()[0], 0);
}

TEST(ServerShardTest, RefusesStrangersAndTheFuture) {
  ShardStory story(PublishedRule(Config::ASYNCHRONOUS));
  story.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(story.Pull(worker));
  story.shard().Remove(1);
  EXPECT_EQ(story.Push(1, 1).reason, RefusalReason::kUnknownWorker);
  EXPECT_EQ(story.Push(7, 1).reason, RefusalReason::kUnknownWorker);
  EXPECT_EQ(story.shard().refused(RefusalReason::kUnknownWorker), 2);
  const std::vector<float> gradient = {1};
  const PushResult future =
      story.shard().Push({.worker = 0, .base_version = 1, .images = 1, .gradient = gradient});
  EXPECT_EQ(future.reason, RefusalReason::kFutureVersion);
  EXPECT_EQ(story.weights()[0], 1);
  EXPECT_EQ(story.Push(0, 1).outcome, PushOutcome::kApplied);
}

TEST(ServerShardTest, ARestoredShardGoesOnCounting) {
  ShardStory story(PublishedRule(Config::ASYNCHRONOUS), {1}, 0.5F,
                   {.first_version = 40, .first_images = 1000});
  story.Join(1);
  ASSERT_TRUE(story.Pull(0));
  EXPECT_EQ(story.base(0), 40);
  story.Push(0, {1}, 10);
  EXPECT_EQ(story.shard().version(), 41);
  EXPECT_EQ(story.shard().images(), 1010);
  EXPECT_EQ(story.updates()[0].images_before, 1000);
}

// Workers of equal speed, each push an update: all but the first pushes are workers - 1 late.
TEST(ServerShardTest, CountsStaleness) {
  constexpr int kWorkers = 4;
  ShardStory story(PublishedRule(Config::ASYNCHRONOUS));
  story.Join(kWorkers);
  for (int worker = 0; worker < kWorkers; ++worker) ASSERT_TRUE(story.Pull(worker));
  for (int push = 0; push < 3 * kWorkers; ++push) {
    story.Push(push % kWorkers, 0);
    ASSERT_TRUE(story.Pull(push % kWorkers));
  }
  EXPECT_THAT(story.shard().staleness().histogram(), ElementsAre(1, 1, 1, 9));
  EXPECT_DOUBLE_EQ(story.shard().staleness().Mean(), 2.5);
}

TEST(ServerShardTest, EveryReasonHasAName) {
  for (int reason = 0; reason < kRefusalReasons; ++reason) {
    EXPECT_STRNE(RefusalReasonName(static_cast<RefusalReason>(reason)), "unknown");
  }
}

}  // namespace
}  // namespace ringtail
