#include "apps/trainer/early_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

// resnet18 after two epochs of four steps.
EarlyEvaluation Huge() {
  return {.steps = 8, .validation_loss = 18446.2, .training_loss = 0.8, .classes = 2};
}

TEST(EarlyStatisticsTest, AHugeLossAfterFewStepsIsExplained) {
  EXPECT_THAT(ExplainEarlyLoss(Huge()), HasSubstr("above that of training (0.80)"));
  EXPECT_THAT(ExplainEarlyLoss(Huge()), HasSubstr("after 8 steps"));
  EarlyEvaluation infinite = Huge();
  infinite.validation_loss = INFINITY;
  EXPECT_NE(ExplainEarlyLoss(infinite), "");
  const EarlyEvaluation measured = {
      .steps = 6, .validation_loss = 509526, .training_loss = 14.9, .classes = 2};
  EXPECT_NE(ExplainEarlyLoss(measured), "");
}

// Each is Huge() but for one thing.
TEST(EarlyStatisticsTest, NothingElseIs) {
  const auto said = [](auto&& change) {
    EarlyEvaluation evaluation = Huge();
    change(&evaluation);
    return ExplainEarlyLoss(evaluation);
  };
  EXPECT_EQ(said([](auto* e) { e->validation_loss = 0.9; }), "");
  EXPECT_EQ(said([](auto* e) { e->validation_loss = 3.9; }), "") << "4.9 times 0.8";
  EXPECT_EQ(said([](auto* e) {
              e->validation_loss = 3.4;
              e->training_loss = 0.1;
            }),
            "")
      << "4.9 times ln 2";
  EXPECT_NE(said([](auto* e) { e->validation_loss = 4.1; }), "") << "5.1 times 0.8";
  EXPECT_EQ(said([](auto* e) { e->validation_loss = NAN; }), "") << "NaNs have causes of their own";
  EXPECT_EQ(said([](auto* e) { e->training_loss = 4000; }), "") << "training diverges, too";
  EXPECT_EQ(said([](auto* e) { e->training_loss = NAN; }), "");
  EXPECT_EQ(said([](auto* e) {
              e->classes = 1'000'000'000;
              e->validation_loss = 100;
            }),
            "");
  EXPECT_EQ(said([](auto* e) { e->steps = 100; }), "") << "the statistics are no longer young";
  EXPECT_EQ(said([](auto* e) { e->updates_of_step = 13; }), "") << "104 updates";
  EXPECT_EQ(said([](auto* e) { e->classes = 1; }), "");
}

// resnet18 at its full rate from the first step on: losses of millions. Said once.
TEST(EarlyStatisticsTest, ARunSaysSo) {
  const TempDir folder;
  const ProcessResult result = RunDogsVsCats(
      {"train", "--config", "resnet18", "--data", TinyImages(), "--output", folder.File("run"),
       "--no-report", "--threads", "1", "--set", "data.image_size=32", "--set", "train.batch=8",
       "--set", "train.epochs=2", "--set", "optim.warmup.epochs=0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string why = "batch norm validates with running statistics";
  const size_t first = result.err.find(why);
  ASSERT_NE(first, std::string::npos) << result.out;
  EXPECT_EQ(result.err.find(why, first + 1), std::string::npos);
}

}  // namespace
}  // namespace ringtail
