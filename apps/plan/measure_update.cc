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

double UpdateOfStep::Update(int64_t step, int64_t batch) {
  const double mean = 1 / static_cast<double>(batch), norm = GradientNorm(*arena_, mean);
  const Stopwatch watch;
  optimizer_->Step(step, kLearningRate, mean * ClipFactor(norm, clip_norm_));
  const double seconds = watch.Seconds();
  if (average_.has_value()) average_->Update(step);
  return seconds;
}

std::vector<double> MeasurePreparation(const OptimConfig& config, const MeasuredUpdate& update,
                                       Optimizer* optimizer) {
  std::vector<double> seconds = optimizer->PreparableWork();
  const double work = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (config.clip_norm() > 0 || work == 0) return {};
  std::vector<size_t> all(seconds.size());
  std::iota(all.begin(), all.end(), size_t{0});
  PreparedStep prepared;
  std::vector<double> rests;
  for (int64_t i = 0; i < update.runs; ++i) {
    prepared.Begin(update.grad_scale);
    optimizer->Prepare(all, &prepared);
    const Stopwatch watch;
    optimizer->StepPrepared(update.first_step + i, update.learning_rate, &prepared);
    rests.push_back(watch.Seconds());
  }
  const double preparable = std::max(0.0, update.optimizer_s - Median(std::move(rests)));
  for (double& s : seconds) s *= preparable / work;
  return seconds;
}

}  // namespace ringtail
