#include "tests/optim/reference_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
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

namespace {

double Distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

}  // namespace

void ExpectStepsAreParts(const std::string& config, double part, double vector_factor) {
  constexpr double kRate = 3;
  for (const float size : {1e-3F, 1.0F, 1e4F}) {
    const auto arena = MakeTestArena();
    const auto optimizer = MakeOptimizer(config, arena.get());
    DrawGradients(0, arena.get());
    for (float& g : arena->grads()) g *= size;
    const std::vector<float> start = Copy(arena->values());
    optimizer->Step(0, kRate, 1);
    for (const Parameter& p : arena->parameters()) {
      const auto before = std::span(start).subspan(p.offset, p.elements);
      const std::vector<float> zero(p.elements);
      const double expected = p.spec.kind == ParameterKind::kVector
                                  ? kRate * vector_factor * Distance(p.grad(), zero)
                                  : kRate * part * Distance(before, zero);
      EXPECT_NEAR(Distance(p.value(), before), expected, 1e-4 * expected)
          << p.spec.name << " with gradients of " << size;
    }
  }
}

}  // namespace ringtail
