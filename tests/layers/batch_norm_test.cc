#include "layers/batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

constexpr size_t kWeight = 0, kBias = 1, kRunningMean = 2, kRunningVar = 3;

// Batch norm as the paper writes it, in double, one channel after the other.
struct Reference {
  std::vector<double> dst, diff_src, mean, variance, diff_weight, diff_bias;
};

double Low(Activation a) {
  return a == Activation::kNone ? -std::numeric_limits<double>::infinity() : 0;
}
double High(Activation a) {
  return a == Activation::kRelu6 ? 6 : std::numeric_limits<double>::infinity();
}

Reference NaiveBatchNorm(const BlobDesc& d, const std::vector<float>& src,
                         std::span<const float> weight, std::span<const float> bias,
                         const std::vector<float>& diff_dst, Activation activation,
                         double epsilon = 1e-5F) {
  Reference r;
  r.dst.resize(src.size());
  r.diff_src.resize(src.size());
  const double M = static_cast<double>(d.N * d.plane());
  for (int64_t c = 0; c < d.C; ++c) {
    const auto for_each = [&](const auto& fn) {
      for (int64_t n = 0; n < d.N; ++n) {
        for (int64_t p = 0; p < d.plane(); ++p) fn((n * d.C + c) * d.plane() + p);
      }
    };
    double mean = 0, variance = 0, sum_g = 0, sum_gx = 0;
    for_each([&](int64_t i) { mean += src[i] / M; });
    for_each([&](int64_t i) { variance += (src[i] - mean) * (src[i] - mean) / M; });
    const double inv_std = 1 / std::sqrt(variance + epsilon);
    const auto y = [&](int64_t i) { return (src[i] - mean) * inv_std * weight[c] + bias[c]; };
    const auto g = [&](int64_t i) {
      return y(i) > Low(activation) && y(i) < High(activation) ? diff_dst[i] : 0.0;
    };
    for_each([&](int64_t i) {
      r.dst[i] = std::min(std::max(y(i), Low(activation)), High(activation));
      sum_g += g(i);
      sum_gx += g(i) * (src[i] - mean) * inv_std;
    });
    for_each([&](int64_t i) {
      const double normalized = (src[i] - mean) * inv_std;
      r.diff_src[i] = weight[c] * inv_std * (g(i) - sum_g / M - normalized * sum_gx / M);
    });
    r.mean.push_back(mean);
    r.variance.push_back(variance);
    r.diff_weight.push_back(sum_gx);
    r.diff_bias.push_back(sum_g);
  }
  return r;
}

template <typename Actual>
void ExpectNear(const Actual& actual, const std::vector<double>& expected, double tolerance,
                const char* what) {
  ASSERT_EQ(std::size(actual), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << what << " element " << i;
  }
}

void FillVector(const Parameter& parameter, uint64_t seed, float low, float high) {
  const std::vector<float> values = RandomPlain({1, parameter.elements}, seed, low, high);
  std::ranges::copy(values, parameter.value().begin());
}

struct Case {
  BlobDesc src;
  Activation activation;
};
class BatchNormTest : public testing::TestWithParam<Case> {};

TEST_P(BatchNormTest, TrainsLikeTheFormula) {
  const auto [desc, activation] = GetParam();
  BatchNormConfig config;
  for (const bool in_place : {true, false}) {
    BatchNormLayer layer(config);
    if (activation != Activation::kNone) {
      ASSERT_TRUE(layer.FuseActivation(activation));
    }
    LayerRunner runner(&layer, {desc}, {.in_place = in_place});
    ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
    FillVector(runner.parameter(kWeight), 1, -2, 3);
    FillVector(runner.parameter(kBias), 2, -1, 4);
    const std::vector<float> src = RandomPlain(desc, 3, -3, 5), diff_dst = RandomPlain(desc, 4);
    const std::vector<float> dst = runner.Forward({src});
    const std::vector<std::vector<float>> diff_src = runner.Backward(diff_dst);
    const Reference expected =
        NaiveBatchNorm(desc, src, runner.parameter(kWeight).value(),
                       runner.parameter(kBias).value(), diff_dst, activation);
    ExpectNear(dst, expected.dst, 2e-5, "dst");
    ExpectNear(diff_src[0], expected.diff_src, 2e-5, "diff_src");
    ExpectNear(runner.parameter(kWeight).grad(), expected.diff_weight, 1e-4, "diff_weight");
    ExpectNear(runner.parameter(kBias).grad(), expected.diff_bias, 1e-4, "diff_bias");
    EXPECT_EQ(runner.problems(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchNormTest,
    testing::Values(Case{{3, 5, 7, 9, 1}, Activation::kNone},
                    Case{{3, 5, 7, 9, 8}, Activation::kRelu},
                    Case{{1, 17, 5, 5, 16}, Activation::kRelu6},
                    Case{{2, 32, 33, 35, 16}, Activation::kRelu},
                    Case{{2, 24, 33, 35, 8}, Activation::kRelu6},
                    Case{{4, 3, 70, 70, 1}, Activation::kRelu},    // more than one piece
                    Case{{5, 33, 1, 1, 1}, Activation::kNone},     // vectors
                    Case{{5, 40, 1, 1, 1}, Activation::kRelu},     // vectors, seen as blocks of 8
                    Case{{5, 48, 1, 1, 1}, Activation::kRelu6}));  // ... of 16

TEST(BatchNormStatisticsTest, LargeMeanKeepsTheVariance) {
  constexpr float kMean = 4096, kStep = 0.25;  // exact in float
  const BlobDesc desc{4, 16, 24, 24, 16};
  std::vector<float> src = RandomPlain(desc, 5, -8, 8);
  for (float& v : src) v = kMean + std::round(v) * kStep;
  BatchNormConfig config;
  BatchNormLayer layer(config);
  LayerRunner runner(&layer, {desc});
  const std::vector<float> dst = runner.Forward({src});
  const Reference expected =
      NaiveBatchNorm(desc, src, runner.parameter(kWeight).value(), runner.parameter(kBias).value(),
                     std::vector<float>(src.size()), Activation::kNone);
  ExpectNear(dst, expected.dst, 1e-3, "dst");  // the mean itself is rounded to 1 / 4096
  std::vector<double> running_var;
  const double M = static_cast<double>(desc.N * desc.plane());
  for (const double v : expected.variance) running_var.push_back(0.9 + 0.1 * v * M / (M - 1));
  ExpectNear(runner.parameter(kRunningVar).value(), running_var, 1e-6, "running_var");
}

TEST(BatchNormStatisticsTest, OutlierAtTheStartKeepsTheVariance) {
  const BlobDesc desc{1, 1, 64, 64, 1};
  std::vector<float> src = RandomPlain(desc, 6);
  src[0] = 1e4F;
  BatchNormConfig config;
  BatchNormLayer layer(config);
  LayerRunner runner(&layer, {desc});
  const std::vector<float> dst = runner.Forward({src});
  const Reference expected =
      NaiveBatchNorm(desc, src, runner.parameter(kWeight).value(), runner.parameter(kBias).value(),
                     std::vector<float>(src.size()), Activation::kNone);
  ExpectNear(dst, expected.dst, 1e-5, "dst");
}

TEST(BatchNormStatisticsTest, RunningStatisticsMoveByMomentumAndServeEvaluation) {
  const BlobDesc desc{2, 5, 3, 3, 8};
  BatchNormConfig config;
  config.set_momentum(0.25);
  config.set_epsilon(0.125);
  BatchNormLayer layer(config);
  LayerRunner runner(&layer, {desc});
  const std::span<float> mean = runner.parameter(kRunningMean).value();
  const std::span<float> variance = runner.parameter(kRunningVar).value();
  std::vector<double> expected_mean(5, 0), expected_variance(5, 1);
  const double M = static_cast<double>(desc.N * desc.plane());
  for (uint64_t step = 0; step < 3; ++step) {
    const std::vector<float> src = RandomPlain(desc, 10 + step, -1, 4);
    runner.Forward({src});
    const Reference batch = NaiveBatchNorm(desc, src, runner.parameter(kWeight).value(),
                                           runner.parameter(kBias).value(), src, Activation::kNone);
    for (size_t c = 0; c < 5; ++c) {
      expected_mean[c] = 0.75 * expected_mean[c] + 0.25 * batch.mean[c];
      expected_variance[c] = 0.75 * expected_variance[c] + 0.25 * batch.variance[c] * M / (M - 1);
    }
  }
  ExpectNear(mean, expected_mean, 1e-5, "running_mean");
  ExpectNear(variance, expected_variance, 1e-5, "running_var");

  runner.step().training = false;
  const std::vector<float> src = RandomPlain(desc, 20);
  const std::vector<float> dst = runner.Forward({src});
  for (size_t i = 0; i < src.size(); ++i) {
    const size_t c = i / 9 % 5;
    const double expected = (src[i] - expected_mean[c]) / std::sqrt(expected_variance[c] + 0.125);
    ASSERT_NEAR(dst[i], expected, 1e-5) << "element " << i;
  }
  ExpectNear(mean, expected_mean, 1e-5, "evaluation must not move running_mean");
  EXPECT_EQ(runner.problems(), "");
}

TEST(BatchNormStatisticsTest, ABatchForSeveralStepsIsThatBatchInEachOfThem) {
  const BlobDesc desc{2, 5, 3, 3, 8};
  BatchNormConfig config;
  config.set_momentum(0.25);
  BatchNormLayer layer(config), in_each_layer(config);
  LayerRunner at_once(&layer, {desc}), in_each(&in_each_layer, {desc});
  at_once.step().statistics_steps = 4;
  for (uint64_t batch = 0; batch < 2; ++batch) {
    const std::vector<float> src = RandomPlain(desc, 30 + batch, -1, 4);
    const std::vector<float> dst = at_once.Forward({src});
    for (int step = 0; step < 4; ++step) EXPECT_EQ(in_each.Forward({src}), dst);
  }
  for (const size_t buffer : {kRunningMean, kRunningVar}) {
    const std::span<const float> steps = in_each.parameter(buffer).value();
    ExpectNear(at_once.parameter(buffer).value(), std::vector<double>(steps.begin(), steps.end()),
               1e-5, "running statistics");
    EXPECT_GT(std::abs(steps[0] - (buffer == kRunningVar ? 1 : 0)), 0.1);
  }
}

// In an evaluation the statistics are constants, so dst is an affine map of src.
TEST(BatchNormStatisticsTest, BackwardOfAnEvaluationIsThatOfAnAffineMap) {
  for (const int64_t block : {1, 8, 16}) {
    const BlobDesc desc{2, 5, 3, 3, block};
    BatchNormConfig config;
    BatchNormLayer layer(config);
    ASSERT_TRUE(layer.FuseActivation(Activation::kRelu));
    LayerRunner runner(&layer, {desc});
    runner.step().training = false;
    for (size_t c = 0; c < 5; ++c) {
      const auto k = static_cast<float>(c);
      runner.parameter(kWeight).value()[c] = k - 1.5F;
      runner.parameter(kRunningMean).value()[c] = 0.1F * k;
      runner.parameter(kRunningVar).value()[c] = 0.5F + k;
    }
    const std::vector<float> src = RandomPlain(desc, 20), diff_dst = RandomPlain(desc, 21);
    const std::vector<float> dst = runner.Forward({src});
    const std::vector<float> diff_src = runner.Backward(diff_dst)[0];
    std::vector<double> expected(src.size()), diff_weight(5), diff_bias(5);
    for (size_t i = 0; i < src.size(); ++i) {
      const size_t c = i / 9 % 5;
      const auto k = static_cast<double>(c);
      const double inv_std = 1 / std::sqrt(0.5 + k + 1e-5), g = dst[i] > 0 ? diff_dst[i] : 0;
      expected[i] = (k - 1.5) * inv_std * g;
      diff_weight[c] += g * (src[i] - 0.1 * k) * inv_std;
      diff_bias[c] += g;
    }
    ExpectNear(diff_src, expected, 1e-5, "diff_src");
    ExpectNear(runner.parameter(kWeight).grad(), diff_weight, 1e-5, "diff_weight");
    ExpectNear(runner.parameter(kBias).grad(), diff_bias, 1e-5, "diff_bias");
    EXPECT_EQ(runner.problems(), "");
  }
}

TEST(BatchNormStatisticsTest, EvaluationWorksInPlaceAndOnOneValue) {
  const BlobDesc desc{1, 3, 1, 1, 8};
  BatchNormConfig config;
  BatchNormLayer layer(config);
  ASSERT_TRUE(layer.FuseActivation(Activation::kRelu));
  LayerRunner runner(&layer, {desc}, {.training = false});
  ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
  EXPECT_TRUE(runner.plan().forward_in_place);
  const std::vector<float> dst = runner.Forward({{-1, 2, 3}});
  ExpectNear(dst, {0, 2 / std::sqrt(1 + 1e-5), 3 / std::sqrt(1 + 1e-5)}, 1e-6, "dst");
  EXPECT_EQ(runner.problems(), "");
}

TEST(BatchNormDeterminismTest, SameBitsForAnyNumberOfThreads) {
  const BlobDesc desc{4, 48, 40, 40, 16};  // 3 channel blocks: whole ones for 1 and 3 threads
  const std::vector<float> src = RandomPlain(desc, 7), diff_dst = RandomPlain(desc, 8);
  std::vector<std::vector<float>> results;
  const int threads_before = NumComputeThreads();
  for (const int threads : {1, 2, 3, 5}) {
    SetNumComputeThreads(threads);
    BatchNormConfig config;
    BatchNormLayer layer(config);
    LayerRunner runner(&layer, {desc});
    std::vector<float> all = runner.Forward({src});
    const std::vector<std::vector<float>> diff_src = runner.Backward(diff_dst);
    all.insert(all.end(), diff_src[0].begin(), diff_src[0].end());
    const std::span<float> diff_weight = runner.parameter(kWeight).grad();
    all.insert(all.end(), diff_weight.begin(), diff_weight.end());
    results.push_back(all);
  }
  SetNumComputeThreads(threads_before);
  for (size_t i = 1; i < results.size(); ++i) EXPECT_EQ(results[i], results[0]);
}

TEST(BatchNormConfigTest, RefusesWhatItCannotDo) {
  BatchNormConfig config;
  {
    BatchNormLayer layer(config);
    const LayerRunner runner(&layer, {{1, 64, 1, 1, 16}});
    EXPECT_EQ(runner.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(runner.status().message(), HasSubstr("more than one value per channel"));
  }
  config.set_epsilon(0);
  {
    BatchNormLayer layer(config);
    const LayerRunner runner(&layer, {{2, 4, 2, 2, 1}});
    EXPECT_THAT(runner.status().message(), HasSubstr("epsilon is 0"));
  }
  config.clear_epsilon();
  config.set_momentum(1.5);
  BatchNormLayer layer(config);
  const LayerRunner runner(&layer, {{2, 4, 2, 2, 1}});
  EXPECT_THAT(runner.status().message(), HasSubstr("momentum is 1.5"));
}

TEST(BatchNormConfigTest, NanStaysVisible) {
  const BlobDesc desc{2, 16, 4, 4, 16};
  std::vector<float> src = RandomPlain(desc, 9);
  src[5] = NAN;  // channel 0
  BatchNormConfig config;
  BatchNormLayer layer(config);
  ASSERT_TRUE(layer.FuseActivation(Activation::kRelu6));
  LayerRunner runner(&layer, {desc});
  const std::vector<float> dst = runner.Forward({src});
  EXPECT_TRUE(std::isnan(dst[0]));
  EXPECT_TRUE(std::isfinite(dst[16]));
}

}  // namespace
}  // namespace ringtail
