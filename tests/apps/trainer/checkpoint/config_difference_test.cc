#include "apps/trainer/checkpoint/config_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

Status Compare(const std::vector<std::string>& then, const std::vector<std::string>& now) {
  return CheckResumable(TinyConfig(then).config, TinyConfig(now).config);
}

TEST(ConfigDifferenceTest, WhereAndHowARunIsDoneMayChange) {
  EXPECT_TRUE(Compare({}, {"data.path=\"elsewhere\"", "data.workers=7", "data.cache_mib=0",
                           "train.threads=3", "train.until_accuracy=0.9",
                           "train.keep_checkpoints=5", "train.on_nan=SKIP"})
                  .ok());
}

TEST(ConfigDifferenceTest, WhatTheWeightsDependOnMayNot) {
  for (const char* change :
       {"train.batch=4", "train.seed=2", "train.epochs=5", "train.accumulation=2",
        "optim.learning_rate=0.1", "optim.adam={}", "data.augment.min_area=0.5",
        "data.split.seed=2", "train.phase[0].image_size=32",
        "net.layer[dropout].dropout.rate=0.3"}) {
    const Status status = Compare({}, {change});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << change;
  }
  EXPECT_THAT(Compare({}, {"train.seed=2", "train.batch=4"}).message(),
              testing::AllOf(testing::HasSubstr("train.batch: 8 -> 4"),
                             testing::HasSubstr("train.seed: 1 -> 2"),
                             testing::Not(testing::HasSubstr("data.path"))));
}

TEST(ConfigDifferenceTest, ADefaultThatIsWrittenOutIsNoChange) {
  EXPECT_TRUE(Compare({}, {"train.seed=1"}).ok());
}

// A batch that is stated is not always another one.
TEST(ConfigDifferenceTest, TheReferenceBatchIsThatOfARankUnlessItIsStated) {
  const std::string stated = "optim.batch_scaling.reference_batch=8";
  EXPECT_TRUE(Compare({}, {stated}).ok());
  EXPECT_TRUE(Compare({stated}, {}).ok());
  EXPECT_FALSE(Compare({"train.batch=4"}, {"train.batch=4", stated}).ok());
  EXPECT_THAT(Compare({}, {"optim.batch_scaling.reference_batch=4"}).message(),
              testing::HasSubstr("reference_batch: 8 -> 4"));
}

TEST(ConfigDifferenceTest, EpochsMayChangeWhereTheRateDoesNotDependOnThem) {
  EXPECT_FALSE(Compare({"optim.cosine={}"}, {"optim.cosine={}", "train.epochs=5"}).ok());
  for (const char* open :
       {"optim.constant={}", "optim.step={}", "optim.multi_step={at_epochs: 1}"}) {
    EXPECT_TRUE(Compare({open}, {open, "train.epochs=5"}).ok()) << open;
  }
}

}  // namespace
}  // namespace ringtail
