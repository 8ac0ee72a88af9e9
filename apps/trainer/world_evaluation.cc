#include "apps/trainer/world_evaluation.h"

#include <algorithm>
#include <array>
#include <span>

#include "apps/trainer/pipeline/stage_evaluation.h"
#include "apps/trainer/sharding/world_shards.h"

namespace ringtail {
namespace {

// Validation images of the ranks with rows [first, first + count) of a batch.
std::span<const int64_t> ShareOf(const Generation& generation, int64_t first, int64_t count) {
  const std::vector<int64_t>& all = generation.data().split.validation;
  const int64_t batch = generation.division.own.global_batch;
  const int64_t begin = first * std::ssize(all) / batch;
  const int64_t end = (first + count) * std::ssize(all) / batch;
  return std::span(all).subspan(begin, end - begin);
}

int64_t MostValidationImages(const Generation& generation) {
  int64_t first = 0;
  size_t most = 0;
  for (const int64_t batch : generation.division.all.batches) {
    most = std::max(most, ShareOf(generation, first, batch).size());
    first += batch;
  }
  return static_cast<int64_t>(most);
}

// With averaged weights if the run keeps them.
StatusOr<EvaluationResult> Evaluate(const Generation& generation, const std::vector<int64_t>& share,
                                    bool stop_on_signal) {
  const ScopedPhase evaluation(generation.world->progress(), Phase::kEvaluation);
  const TrainingData& data = generation.data();
  WeightAverage* const average = generation.state().average();
  EvaluationOptions options = EvaluationOptionsOf(
      generation.config(), generation.plan.PhaseAt(generation.step() - 1).image_size);
  options.stop_on_signal = stop_on_signal;
  WorldShards shards(generation.world);
  if (generation.run->shards.divides()) {
    options.shards = &shards;
    options.most_images = MostValidationImages(generation);
  }
  if (average != nullptr) average->Swap();
  if (generation.link != nullptr) {
    auto result = EvaluateStage(generation.link.get(), generation.state().model(), *data.dataset,
                                share, generation.config().data(), options);
    if (average != nullptr) average->Swap();
    return result;
  }
  const auto logits = ComputeLogits(generation.state().model(), *data.dataset, share,
                                    generation.config().data(), options);
  if (average != nullptr) average->Swap();
  RT_RETURN_IF_ERROR(Status(logits.status()));
  return Score(*logits, *data.dataset, share);
}

}  // namespace

std::vector<int64_t> EvaluationShare(const Generation& generation) {
  const BatchShare& own = generation.division.own;
  const std::span<const int64_t> share = ShareOf(generation, own.first_row, own.batch);
  return {share.begin(), share.end()};
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
