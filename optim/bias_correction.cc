#include "optim/bias_correction.h"

#include <cmath>

#include "core/check.h"

namespace ringtail {
namespace {

BiasCorrection CorrectionAfter(int64_t updates, double beta1, double beta2) {
  RT_CHECK(updates >= 1, "a parameter is updated before its first step");
  const auto t = static_cast<double>(updates);
  return {.first = 1 - std::pow(beta1, t), .root_second = std::sqrt(1 - std::pow(beta2, t))};
}

}  // namespace

BiasCorrections::BiasCorrections(double beta1, double beta2, int64_t step,
                                 std::span<const int64_t> first_steps)
    : first_steps_(first_steps) {
  if (first_steps.empty()) by_first_step_[0] = CorrectionAfter(step + 1, beta1, beta2);
  for (const int64_t first : first_steps) {
    if (by_first_step_.contains(first)) continue;
    by_first_step_[first] = CorrectionAfter(step + 1 - first, beta1, beta2);
  }
}

}  // namespace ringtail
