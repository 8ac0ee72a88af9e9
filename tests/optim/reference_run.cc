#include "tests/optim/reference_run.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringtail {

void ExpectFollowsReference(
    const std::string& config, double first_rate, double tolerance,
    const std::function<void(const ReferenceStep& step, ReferenceTensor* tensor)>& reference) {
  constexpr int64_t kSteps = 5;
  constexpr double kGradScale = 0.25;
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer(config, arena.get());
  std::vector<ReferenceTensor> tensors;
  for (const Parameter& p : arena->parameters()) tensors.emplace_back(p.value());
  for (int64_t step = 0; step < kSteps; ++step) {
    const double rate = first_rate / static_cast<double>(1 + step);
    DrawGradients(step, arena.get());
    optimizer->Step(step, rate, kGradScale);
    for (size_t k = 0; k < tensors.size(); ++k) {
      const Parameter& p = arena->parameters()[k];
      reference({.parameter = p, .step = step, .rate = rate, .grad_scale = kGradScale},
                &tensors[k]);
      for (int64_t i = 0; i < p.elements; ++i) {
        ASSERT_NEAR(p.value()[i], tensors[k].weight[i], tolerance)
            << p.spec.name << "[" << i << "] after step " << step;
      }
    }
  }
}

}  // namespace ringtail
