// What a rule has learnt survives a checkpoint, with as many workers as before or others.
#include "dist/parameter_server/rule_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/shard_story.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using Config = AsynchronousConfig;

constexpr RuleScalars kOdd = {.updates = (int64_t{1} << 52) + 12345,
                              .usual_weight = 1.0 / 3,
                              .learning_rate = 5e-324,
                              .mean_step = std::numeric_limits<double>::max()};

TEST(RuleMemoryTest, ScalarsKeepAllBitsAsFloats) {
  std::array<float, kScalarFloats> encoded{};
  EncodeScalars(kOdd, encoded);
  EXPECT_EQ(DecodeScalars(encoded), kOdd);
}

TEST(RuleMemoryTest, SeveralShardsHaveTheirMean) {
  const std::vector<RuleScalars> shards = {
      {.updates = 10, .usual_weight = 1, .learning_rate = 0.1, .mean_step = 2},
      {.updates = 20, .usual_weight = 0.5, .learning_rate = 0.3, .mean_step = 4}};
  const RuleScalars mean = MeanOf(shards);
  EXPECT_EQ(mean.updates, 15);
  EXPECT_EQ(mean.usual_weight, 0.75);
  EXPECT_DOUBLE_EQ(mean.learning_rate, 0.2);
  EXPECT_EQ(mean.mean_step, 3);
  EXPECT_EQ(MeanOf({&kOdd, 1}), kOdd);
}

AsynchronousRule Dana() {
  AsynchronousRule rule = PublishedRule(Config::DANA);
  rule.compensation.decay = 0.9;
  return rule;
}

void PullAndPush(ShardStory* story, int worker, float gradient) {
  ASSERT_TRUE(story->Pull(worker));
  story->Push(worker, {gradient, -0.3F * gradient});
}

// Of DANA's look-ahead: the weights that a worker is given, too.
TEST(RuleMemoryTest, OneWorkerOfDanaContinuesWithTheSameBits) {
  ShardStory whole(Dana(), {1, -2}, 0.1F);
  whole.Join(1);
  for (int i = 0; i < 20; ++i) PullAndPush(&whole, 0, 0.1F + 0.013F * static_cast<float>(i));
  std::vector<float> block(2);
  const RuleScalars scalars = whole.shard().SaveMemory(block);
  EXPECT_EQ(scalars.updates, 20);
  EXPECT_THAT(block, Each(testing::Ne(0)));

  ShardStory other(Dana(), whole.weights(), 0.1F);
  other.Join(1);
  other.shard().RestoreMemory(block, scalars);
  for (int i = 0; i < 20; ++i) {
    for (ShardStory* story : {&whole, &other})
      PullAndPush(story, 0, 0.7F / static_cast<float>(1 + i));
    ASSERT_EQ(whole.pulled(0), other.pulled(0)) << i;
    ASSERT_EQ(whole.weights(), other.weights()) << i;
  }
}

TEST(RuleMemoryTest, MoreWorkersOfDanaShareTheVelocity) {
  ShardStory one(Dana(), {0}, 0.1F);
  one.Join(1);
  ASSERT_TRUE(one.Pull(0));
  one.Push(0, 8);
  std::vector<float> block(1);
  const RuleScalars scalars = one.shard().SaveMemory(block);
  EXPECT_THAT(block, ElementsAre(8));

  ShardStory four(Dana(), {0}, 0.1F);
  four.Join(4);
  four.shard().RestoreMemory(block, scalars);
  ASSERT_TRUE(four.Pull(0));
  EXPECT_FLOAT_EQ(four.pulled(0)[0], -0.1F * 0.9F * 8);  // all look as far ahead as one did
  four.Push(0, 0);
  EXPECT_FLOAT_EQ(four.weights()[0], -0.1F * 0.9F * 2);
}

// lambda = strength / sqrt(MS + 1e-7), by the mean of what the workers had: (4 + 16) (1 - decay) / 2
TEST(RuleMemoryTest, WorkersOfAdaptiveCompensationBeginWithTheMeanSquares) {
  AsynchronousRule rule = PublishedRule(Config::DC_ADAPTIVE);
  rule.compensation.decay = 0.75;
  ShardStory two(rule);
  two.Join(2);
  for (const int worker : {0, 1}) ASSERT_TRUE(two.Pull(worker));
  two.Push(0, 2);
  two.Push(1, 4);
  std::vector<float> block(1);
  const RuleScalars scalars = two.shard().SaveMemory(block);
  EXPECT_THAT(block, ElementsAre(2.5F));

  ShardStory next(rule);
  next.Join(3);
  next.shard().RestoreMemory(block, scalars);
  for (const int worker : {0, 1, 2}) {
    ASSERT_TRUE(next.Pull(worker));
    next.Push(worker, 0);
  }
  next.shard().SaveMemory(block);
  EXPECT_THAT(block, ElementsAre(0.75F * 2.5F));
}

TEST(RuleMemoryTest, OfDanaWithGapsBothAreKept) {
  AsynchronousRule rule = PublishedRule(Config::DANA);
  rule.weight.form = StalenessWeight::Form::kGapAware;
  ShardStory story(rule);
  story.Join(1);
  ASSERT_TRUE(story.Pull(0));
  story.Push(0, 1);
  std::vector<float> block(1);
  EXPECT_EQ(story.shard().SaveMemory(block).mean_step, 0.5);
  EXPECT_THAT(block, ElementsAre(1));
}

TEST(RuleMemoryTest, OfOtherRulesThereAreScalarsOnly) {
  EXPECT_EQ(RuleBlockName(PublishedRule(Config::DANA)), "velocities");
  EXPECT_EQ(RuleBlockName(PublishedRule(Config::DC_ADAPTIVE)), "mean_squares");
  for (const auto rule : {Config::ASYNCHRONOUS, Config::DC_CONSTANT, Config::GAP_AWARE}) {
    EXPECT_EQ(RuleBlockName(PublishedRule(rule)), "");
  }
  ShardStory story(PublishedRule(Config::GAP_AWARE));
  story.Join(1);
  ASSERT_TRUE(story.Pull(0));
  story.Push(0, 1);
  const RuleScalars scalars = story.shard().SaveMemory({});
  EXPECT_EQ(scalars.mean_step, 0.5);
  EXPECT_EQ(scalars.learning_rate, 0.5);
}

}  // namespace
}  // namespace ringtail
