// An optimizer beside its formula in double precision: a few steps over the test arena, with new
// gradients in each step and a falling rate.
#ifndef RINGTAIL_TESTS_OPTIM_REFERENCE_RUN_H_
#define RINGTAIL_TESTS_OPTIM_REFERENCE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "tests/optim/test_arena.h"

namespace ringtail {

// A step for one parameter: its gradient is `grad_scale` times parameter.grad().
struct ReferenceStep {
  const Parameter& parameter;
  int64_t step;
  double rate, grad_scale;
  bool is_vector() const { return parameter.spec.kind == ParameterKind::kVector; }
};

// Steps of first_rate / (1 + step). Every weight must be within `tolerance` of the reference's
// after each of them.
void ExpectFollowsReference(
    const std::string& config, double first_rate, double tolerance,
    const std::function<void(const ReferenceStep& step, ReferenceTensor* tensor)>& reference);

// A first step of any rate must move every weight tensor by rate * part of its norm, however large
// its gradient, and every vector by rate * vector_factor of its gradient.
void ExpectStepsAreParts(const std::string& config, double part, double vector_factor);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_OPTIM_REFERENCE_RUN_H_
