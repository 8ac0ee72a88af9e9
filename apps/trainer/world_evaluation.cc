#include "apps/trainer/world_evaluation.h"

#include <array>

namespace ringtail {
namespace {

// With averaged weights if the run keeps them.
StatusOr<EvaluationResult> Evaluate(const Generation& generation, const std::vector<int64_t>& share,
                                    bool stop_on_signal) {
  const ScopedPhase evaluation(generation.world->progress(), Phase::kEvaluation);
  const TrainingData& data = generation.data();
  WeightAverage* const average = generation.state().average();
  EvaluationOptions options = EvaluationOptionsOf(
      generation.config(), generation.plan.PhaseAt(generation.step() - 1).image_size);
  options.stop_on_signal = stop_on_signal;
  if (average != nullptr) average->Swap();
  const auto logits = ComputeLogits(generation.state().model(), *data.dataset, share,
                                    generation.config().data(), options);
  if (average != nullptr) average->Swap();
  RT_RETURN_IF_ERROR(Status(logits.status()));
  return Score(*logits, *data.dataset, share);
}

}  // namespace

std::vector<int64_t> EvaluationShare(const Generation& generation) {
  const std::vector<int64_t>& all = generation.data().split.validation;
  const BatchShare& share = generation.division.own;
  const auto before = [&](int64_t row) {
    return all.begin() + row * std::ssize(all) / share.global_batch;
  };
  return {before(share.first_row), before(share.first_row + share.batch)};
}

StatusOr<EvaluationResult> EvaluateAlone(const Generation& generation) {
  return Evaluate(generation, generation.data().split.validation, /*stop_on_signal=*/true);
}

StatusOr<EvaluationResult> EvaluateTogether(const Generation& generation) {
  const auto own = Evaluate(generation, EvaluationShare(generation), generation.world->alone());
  RT_RETURN_IF_ERROR(Status(own.status()));
  std::array<double, 3> sums{own->loss_sum, static_cast<double>(own->correct),
                             static_cast<double>(own->images)};
  RT_RETURN_IF_ERROR(generation.world->Sum(sums));
  return EvaluationResult{.loss_sum = sums[0],
                          .correct = static_cast<int64_t>(sums[1]),
                          .images = static_cast<int64_t>(sums[2])};
}

}  // namespace ringtail
