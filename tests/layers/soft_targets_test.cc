// The loss of mixed and weighted rows, and its gradient, against double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "layers/softmax_cross_entropy.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

constexpr int64_t kRows = 6, kClasses = 5;
using Weights = std::vector<std::array<float, 2>>;

struct Targets {
  std::vector<int32_t> labels = {0, 1, 2, -1, 4, 3};
  std::vector<int32_t> others = {3, 1, -1, 2, 0, 4};  // the second row is mixed with its own class
  Weights weights = {{0.7F, 0.3F}, {0.6F, 0.4F}, {1, 0}, {0.5F, 0.5F}, {2.5F, 0.25F}, {0.125F, 0}};
};

struct Result {
  std::vector<float> loss, gradient;
  std::string problems;
};

Result RunLayer(float smoothing, const std::vector<float>& logits, const Targets& targets,
                bool soft) {
  SoftmaxCrossEntropyConfig config;
  config.set_label_smoothing(smoothing);
  SoftmaxCrossEntropyLayer layer(config);
  LayerRunner runner(&layer, {BlobDesc{.N = kRows, .C = kClasses}});
  EXPECT_TRUE(runner.status().ok()) << runner.status().ToString();
  runner.step().labels = targets.labels;
  if (soft) runner.step().soft = {.other_labels = targets.others, .weights = targets.weights};
  Result result;
  result.loss = runner.Forward({logits});
  result.gradient = runner.Backward(std::vector<float>(kRows, 1))[0];
  result.problems = runner.problems();
  return result;
}

std::vector<float> Logits() { return RandomPlain(BlobDesc{.N = kRows, .C = kClasses}, 7, -4, 5); }

// The weighted sum of both classes' smoothed cross-entropies, written out.
double Loss(double s, const double* z, int64_t n, const Targets& targets) {
  if (targets.labels[n] < 0) return 0;
  double sum = 0, loss = 0;
  for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(z[c]);
  const auto add = [&](int32_t label, double weight) {
    for (int64_t c = 0; label >= 0 && c < kClasses; ++c) {
      const double q = (c == label ? 1 - s : 0) + s / kClasses;
      loss -= weight * q * std::log(std::exp(z[c]) / sum);
    }
  };
  add(targets.labels[n], targets.weights[n][0]);
  add(targets.others[n], targets.weights[n][1]);
  return loss;
}

TEST(SoftTargetsTest, LossAndGradientAreThoseOfDoublePrecision) {
  const Targets targets;
  const std::vector<float> logits = Logits();
  for (const float smoothing : {0.0F, 0.1F}) {
    const Result result = RunLayer(smoothing, logits, targets, /*soft=*/true);
    EXPECT_EQ(result.problems, "");
    for (int64_t n = 0; n < kRows; ++n) {
      std::vector<double> z(logits.begin() + n * kClasses, logits.begin() + (n + 1) * kClasses);
      EXPECT_NEAR(result.loss[n], Loss(smoothing, z.data(), n, targets), 2e-6) << n;
      for (int64_t c = 0; c < kClasses; ++c) {
        constexpr double kStep = 1e-4;
        std::vector<double> up = z, down = z;
        up[c] += kStep;
        down[c] -= kStep;
        const double slope =
            (Loss(smoothing, up.data(), n, targets) - Loss(smoothing, down.data(), n, targets)) /
            (2 * kStep);
        EXPECT_NEAR(result.gradient[n * kClasses + c], slope, 1e-6) << n << " " << c;
      }
    }
  }
}

TEST(SoftTargetsTest, OneClassOfWeightOneIsThePlainLabel) {
  Targets targets;
  targets.others.assign(kRows, -1);
  targets.weights.assign(kRows, {1, 0.5F});  // of no class: must not count
  for (const float smoothing : {0.0F, 0.1F}) {
    const Result soft = RunLayer(smoothing, Logits(), targets, true);
    const Result plain = RunLayer(smoothing, Logits(), targets, false);
    EXPECT_EQ(soft.loss, plain.loss);
    EXPECT_EQ(soft.gradient, plain.gradient);
  }
}

}  // namespace
}  // namespace ringtail
