#include "layers/drop_connect.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/parallel_for.h"
#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

constexpr int64_t kInputs = 35, kOutputs = 6;

DropConnectConfig Config(float rate) {
  DropConnectConfig config;
  config.set_rate(rate);
  config.mutable_linear()->set_out_features(kOutputs);
  config.mutable_linear()->mutable_bias_init()->mutable_constant()->set_value(0.25F);
  return config;
}

// (N = inputs, C = inputs): with the identity as src,
// dst is the transposed masked weight plus bias.
std::vector<float> IdentitySrc() {
  std::vector<float> src(kInputs * kInputs, 0.0F);
  for (int64_t i = 0; i < kInputs; ++i) src[i * kInputs + i] = 1;
  return src;
}

TEST(DropConnectTest, TrainingUsesSomeWeightsAsTheyAreAndNoOthers) {
  const DropConnectConfig config = Config(0.25F);
  DropConnectLayer layer(config, 5);
  LayerRunner runner(&layer, {BlobDesc{kInputs, kInputs}});
  ASSERT_TRUE(runner.status().ok());
  const std::vector<float> dst = runner.Forward({IdentitySrc()});
  const std::vector<float> diff_dst(dst.size(), 1.0F);
  runner.Backward(diff_dst);
  int dropped = 0;
  for (int64_t o = 0; o < kOutputs; ++o) {
    for (int64_t i = 0; i < kInputs; ++i) {
      const float weight = runner.parameter(0).value()[o * kInputs + i];
      const float used = dst[i * kOutputs + o] - 0.25F;
      const bool is_dropped = std::abs(used) < 1e-6F;
      dropped += is_dropped ? 1 : 0;
      EXPECT_NEAR(used, is_dropped ? 0.0F : weight, 1e-6);
      EXPECT_EQ(runner.parameter(0).grad()[o * kInputs + i], is_dropped ? 0.0F : 1.0F);
    }
    EXPECT_EQ(runner.parameter(1).grad()[o], kInputs);
  }
  const double count = kInputs * kOutputs;
  EXPECT_NEAR(dropped / count, 0.25, 5 * std::sqrt(0.25 * 0.75 / count));
  EXPECT_EQ(runner.problems(), "");
}

TEST(DropConnectTest, EvaluationIsTheMeanOverManySteps) {
  constexpr int kSteps = 2000;
  const BlobDesc desc = {2, kInputs};
  const DropConnectConfig config = Config(0.5F);
  DropConnectLayer layer(config, 5);
  LayerRunner runner(&layer, {desc});
  ASSERT_TRUE(runner.status().ok());
  const std::vector<float> src = RandomPlain(desc, 1);
  std::vector<double> mean(2 * kOutputs), square(2 * kOutputs);
  for (int step = 0; step < kSteps; ++step) {
    runner.step().step = static_cast<uint64_t>(step);
    const std::vector<float> dst = runner.Forward({src});
    for (size_t i = 0; i < dst.size(); ++i) {
      mean[i] += dst[i] / kSteps;
      square[i] += static_cast<double>(dst[i]) * dst[i] / kSteps;
    }
  }
  runner.step().training = false;
  const std::vector<float> evaluation = runner.Forward({src});
  for (size_t i = 0; i < evaluation.size(); ++i) {
    const double deviation = std::sqrt((square[i] - mean[i] * mean[i]) / kSteps);
    EXPECT_GT(deviation, 0);
    EXPECT_NEAR(evaluation[i], mean[i], 5 * deviation);
  }
}

TEST(DropConnectTest, BackwardOfAnEvaluationUsesTheMeanWeights) {
  const DropConnectConfig config = Config(0.25F);
  DropConnectLayer layer(config, 5);
  LayerRunner runner(&layer, {BlobDesc{1, kInputs}});
  ASSERT_TRUE(runner.status().ok());
  runner.step().training = false;
  const std::vector<float> src = RandomPlain({1, kInputs}, 1);
  runner.Forward({src});
  std::vector<float> diff_dst(kOutputs, 0.0F);
  diff_dst[2] = 1;
  const std::vector<float> diff_src = runner.Backward(diff_dst)[0];
  for (int64_t i = 0; i < kInputs; ++i) {
    EXPECT_NEAR(diff_src[i], 0.75F * runner.parameter(0).value()[2 * kInputs + i], 1e-6);
    EXPECT_NEAR(runner.parameter(0).grad()[2 * kInputs + i], 0.75F * src[i], 1e-6);
  }
  EXPECT_EQ(runner.problems(), "");
}

TEST(DropConnectTest, MaskIsAFunctionOfTheStepNotOfThreadsOrSamples) {
  const BlobDesc desc = {1, 9000};  // enough weights for several tasks
  const DropConnectConfig config = Config(0.5F);
  DropConnectLayer layer(config, 5);
  LayerRunner runner(&layer, {desc});
  ASSERT_TRUE(runner.status().ok());
  const std::vector<float> src(9000, 1.0F);
  const auto gradient = [&] {
    runner.Forward({src});
    runner.Backward(std::vector<float>(kOutputs, 1.0F));
    const auto grad = runner.parameter(0).grad();
    return std::vector<float>(grad.begin(), grad.end());
  };
  const std::vector<float> mask = gradient();
  runner.step().first_sample = 12;
  const int threads = NumComputeThreads();
  SetNumComputeThreads(3);
  EXPECT_EQ(gradient(), mask);
  SetNumComputeThreads(threads);
  runner.step().step = 1;
  EXPECT_NE(gradient(), mask);
}

TEST(DropConnectTest, RejectsWhatItCannotDo) {
  DropConnectConfig config = Config(1.0F);
  DropConnectLayer all(config, 5);
  EXPECT_FALSE(all.InferShape(std::array{BlobDesc{1, 1}}).ok());
  EXPECT_EQ(all.failed_field(), "rate");
  config = Config(0.5F);
  config.mutable_linear()->set_out_features(0);
  DropConnectLayer nothing(config, 5);
  EXPECT_FALSE(nothing.InferShape(std::array{BlobDesc{1, 1}}).ok());
  EXPECT_EQ(nothing.failed_field(), "linear.out_features");
}

}  // namespace
}  // namespace ringtail
