#include "apps/trainer/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "apps/trainer/update/gradient_pass.h"
#include "core/stop_signal.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

std::vector<int64_t> All(const Dataset& dataset) {
  std::vector<int64_t> all(dataset.samples().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class EvaluationTest : public testing::Test {
 protected:
  EvaluationTest() : loaded_(TinyConfig({"train.phase={}", "train.phase[0].image_size=16"})) {
    model_ = CreateModel(loaded_).value();
    model_->Initialize(1);
    dataset_ = Dataset::Open(loaded_.config.data()).value();
  }
  ImageLogits Logits(const EvaluationOptions& options) {
    return ComputeLogits(model_.get(), *dataset_, All(*dataset_), loaded_.config.data(), options)
        .value();
  }

  LoadedConfig loaded_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(EvaluationTest, TheBatchChangesNothing) {
  const ImageLogits whole = Logits({.batch = 48, .image_size = 16});
  ASSERT_EQ(whole.values.size(), 48U * 2);
  for (const int64_t batch : {1, 7, 32, 100}) {  // 48 is no multiple of 7 and 32
    EXPECT_THAT(Logits({.batch = batch, .image_size = 16}).values,
                testing::Pointwise(testing::FloatNear(1e-5F), whole.values))
        << batch;
  }
}

// The images alone take a terabyte. That is noticed before anything is computed.
TEST_F(EvaluationTest, WhatDoesNotFitIntoMemorySaysWhatToLower) {
  constexpr int64_t kBatch = 65536, kSize = 1024;
  const Status evaluation =
      CreateEvaluationNet(model_.get(), kBatch - 1, {.batch = kBatch, .image_size = kSize})
          .status();
  EXPECT_EQ(evaluation.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(evaluation.message(),
              testing::AllOf(testing::HasSubstr("a batch of 65535 images of 1024x1024 needs"),
                             testing::HasSubstr("; take a lower train.evaluation_batch")));
  const Status training =
      GradientPass::Create(model_.get(), {.batch = kBatch, .image_size = kSize}).status();
  EXPECT_EQ(training.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(training.message(), testing::HasSubstr("; take a lower train.batch"));
}

TEST_F(EvaluationTest, FlippedIsTheMeanOfBothViews) {
  const ImageLogits plain = Logits({.batch = 16, .image_size = 16});
  const ImageLogits both = Logits({.batch = 16, .image_size = 16, .flipped = true});
  EXPECT_NE(both.values, plain.values);
  double distance = 0, size = 0;
  for (size_t i = 0; i < plain.values.size(); ++i) {
    distance += std::abs(both.values[i] - plain.values[i]);
    size += std::abs(plain.values[i]);
  }
  EXPECT_LT(distance, size);  // another view of the same image, not the sum of two
}

TEST_F(EvaluationTest, ImagesThatCannotBeDecodedDoNotCount) {
  const TempDir folder;
  std::filesystem::copy(TinyImages(), folder.path(), std::filesystem::copy_options::recursive);
  std::ofstream(folder.File("train/cat.3.jpg"), std::ios::trunc) << "no image";
  DataConfig data = loaded_.config.data();
  data.set_path(folder.path());
  data.mutable_bad_images()->set_max_fraction(0.5);
  const auto dataset = Dataset::Open(data).value();
  const std::vector<int64_t> all = All(*dataset);
  const ImageLogits logits =
      ComputeLogits(model_.get(), *dataset, all, data, {.batch = 10, .image_size = 16}).value();
  ASSERT_EQ(logits.bad.size(), 1U);
  EXPECT_EQ(logits.bad[0].key, "cat.3.jpg");
  EXPECT_EQ(std::count(logits.usable.begin(), logits.usable.end(), false), 1);
  EXPECT_EQ(Score(logits, *dataset, all).images, 47);
}

TEST_F(EvaluationTest, ScoreCountsEachImageOnce) {
  const std::vector<int64_t> images = {0, 1, 47};  // cat, cat, dog
  ImageLogits logits;
  logits.classes = 2;
  logits.usable = {true, true, true};
  logits.values = {2, 0, 0, 1, -1000, 1000};
  const EvaluationResult result = Score(logits, *dataset_, images);
  EXPECT_EQ(result.correct, 2);
  EXPECT_DOUBLE_EQ(result.accuracy(), 2.0 / 3);
  EXPECT_NEAR(result.loss(), (std::log(1 + std::exp(-2.0)) + std::log(1 + std::exp(1.0))) / 3,
              1e-12);
}

TEST_F(EvaluationTest, ASignalEndsIt) {
  SetStopSignalForTest(SIGTERM);
  const auto logits = ComputeLogits(model_.get(), *dataset_, All(*dataset_), loaded_.config.data(),
                                    {.batch = 8, .image_size = 16});
  SetStopSignalForTest(0);
  EXPECT_EQ(logits.status().code(), StatusCode::kCancelled);
}

TEST(SoftmaxTest, DoesNotOverflow) {
  const std::vector<float> logits = {1000, 1001};
  const std::vector<double> p = Softmax(logits);
  EXPECT_NEAR(p[1], 1 / (1 + std::exp(-1.0)), 1e-12);
  EXPECT_NEAR(p[0] + p[1], 1, 1e-12);
}

TEST(ArgMaxTest, TakesTheFirstOfEquals) { EXPECT_EQ(ArgMax(std::vector<float>{1, 3, 3}), 1); }

}  // namespace
}  // namespace ringtail
