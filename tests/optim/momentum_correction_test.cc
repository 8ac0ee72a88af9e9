// Goyal et al. 2017, section 3, remark 2. If the velocity contains the rate,
//
//   v = m v + lr g,   w = w - v                      (the form of many papers, LARS among them)
//
// old gradients keep the rate of their step, so a rising rate lags, and a falling one overshoots.
// Momentum correction multiplies v by lr_new / lr_old at each change. Ringtail's rules keep the
// rate outside, v = m v + g, w = w - lr v, which is always the corrected form. These tests compare
// it with the papers' form, with and without the correction.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr double kMomentum = 0.9;
constexpr int kSteps = 12;

// Rises over four steps from a sixteenth, like a warm-up, and falls to a tenth at step 8.
double Rate(int64_t step) {
  const double warmup = std::min(1.0, (1.0 + static_cast<double>(step) * 3.75) / 16);
  return 0.1 * warmup * (step >= 8 ? 0.1 : 1);
}

// The largest difference of SGD's weights from those of the papers' form.
double Distance(bool correct) {
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("sgd { momentum: 0.9 } weight_decay: 0", arena.get());
  std::vector<ReferenceTensor> references;
  for (const Parameter& p : arena->parameters()) references.emplace_back(p.value());
  double distance = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    DrawGradients(step, arena.get());
    optimizer->Step(step, Rate(step), 1);
    const double change = correct && step > 0 ? Rate(step) / Rate(step - 1) : 1;
    for (size_t k = 0; k < references.size(); ++k) {
      const Parameter& p = arena->parameters()[k];
      for (int64_t i = 0; i < p.elements; ++i) {
        double &v = references[k].first[i], &w = references[k].weight[i];
        v = kMomentum * (v * change) + Rate(step) * p.grad()[i];
        w -= v;
        distance = std::max(distance, std::abs(w - p.value()[i]));
      }
    }
  }
  return distance;
}

TEST(MomentumCorrectionTest, TheRateOutsideTheVelocityIsTheCorrectedForm) {
  EXPECT_LT(Distance(true), 5e-6);
}

TEST(MomentumCorrectionTest, WithoutTheCorrectionTheFormsDiffer) {
  EXPECT_GT(Distance(false), 0.1);
}

}  // namespace
}  // namespace ringtail
