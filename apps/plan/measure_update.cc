#include "apps/plan/measure_update.h"

#include <algorithm>
#include <numeric>

#include "core/median.h"
#include "core/stopwatch.h"
#include "optim/gradient_norm.h"

namespace ringtail {

UpdateOfStep::UpdateOfStep(const OptimConfig& config, Optimizer* optimizer, ParameterArena* arena)
    : clip_norm_(config.clip_norm()), optimizer_(optimizer), arena_(arena) {
  if (config.ema_decay() > 0) average_.emplace(config.ema_decay(), arena);
}

UpdateParts UpdateOfStep::Update(int64_t step, int64_t batch) {
  UpdateParts parts;
  Stopwatch watch;
  const double mean = 1 / static_cast<double>(batch), norm = GradientNorm(*arena_, mean);
  parts.norm_s = watch.Restart();
  optimizer_->Step(step, kLearningRate, mean * ClipFactor(norm, clip_norm_));
  parts.optimizer_s = watch.Restart();
  if (average_.has_value()) average_->Update(step);
  parts.average_s = watch.Seconds();
  return parts;
}

Preparation MeasurePreparation(const OptimConfig& config, const MeasuredUpdate& update,
                               Optimizer* optimizer) {
  Preparation found{.seconds = optimizer->PreparableWork()};
  const double work = std::accumulate(found.seconds.begin(), found.seconds.end(), 0.0);
  if (config.clip_norm() > 0 || work == 0) return {};
  std::vector<size_t> all(found.seconds.size());
  std::iota(all.begin(), all.end(), size_t{0});
  PreparedStep prepared;
  std::vector<double> wholes;
  double preparing = 0, sum = 0;
  for (int64_t i = 0; i < update.runs; ++i) {
    prepared.Begin(update.grad_scale);
    Stopwatch watch;
    optimizer->Prepare(all, &prepared);
    preparing += watch.Seconds();
    optimizer->StepPrepared(update.first_step + i, UpdateOfStep::kLearningRate, &prepared);
    wholes.push_back(watch.Seconds());
    sum += wholes.back();
  }
  // Parts by their shares of all of the time, as in MeasureStep.
  const double whole = Median(std::move(wholes));
  for (double& s : found.seconds) s *= whole * preparing / sum / work;
  found.longer_s = std::max(0.0, whole - update.optimizer_s);
  return found;
}

}  // namespace ringtail
