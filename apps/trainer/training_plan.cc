#include "apps/trainer/training_plan.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ringtail {

TrainingPlan::TrainingPlan(const RunConfig& config, int64_t steps_per_epoch)
    : steps_per_epoch_(steps_per_epoch) {
  RT_CHECK(steps_per_epoch >= 1, "an epoch without steps");
  const TrainConfig& train = config.train();
  total_steps_ = std::max<int64_t>(1, StepAt(train.epochs()));
  evaluation_interval_ = std::max<int64_t>(1, StepAt(train.evaluate_every_epochs()));
  checkpoint_interval_ = train.checkpoint_every_steps();
  phases_.push_back({0, config.data().image_size()});
  for (const PhaseConfig& phase : train.phase()) {
    phases_.push_back({StepAt(phase.from_epoch()), phase.image_size()});
  }
}

int64_t TrainingPlan::StepAt(double epoch) const {
  constexpr double kNever = 1e15;  // a step that no run reaches, far from overflow
  return std::llround(std::min(epoch * static_cast<double>(steps_per_epoch_), kNever));
}

const TrainingPlan::Phase& TrainingPlan::PhaseAt(int64_t step) const {
  const auto after = std::find_if(phases_.begin(), phases_.end(),
                                  [&](const Phase& phase) { return phase.first_step > step; });
  return *std::prev(after);
}

double TrainingPlan::EpochAt(int64_t step) const {
  return static_cast<double>(step) / static_cast<double>(steps_per_epoch_);
}

double TrainingPlan::WorkLeft(int64_t step) const {
  const auto pixels = [](const Phase& phase) {
    return static_cast<double>(phase.image_size) * static_cast<double>(phase.image_size);
  };
  const double last_step = pixels(PhaseAt(std::max<int64_t>(step - 1, 0)));
  double work = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const int64_t end = i + 1 < phases_.size() ? phases_[i + 1].first_step : total_steps_;
    const int64_t steps = std::min(end, total_steps_) - std::max(phases_[i].first_step, step);
    if (steps > 0) work += static_cast<double>(steps) * pixels(phases_[i]) / last_step;
  }
  return work;
}

bool TrainingPlan::EvaluationIsDue(int64_t step) const {
  return step > 0 && (step % evaluation_interval_ == 0 || step >= total_steps_);
}

bool TrainingPlan::CheckpointIsDue(int64_t step) const {
  return step > 0 && checkpoint_interval_ > 0 && step % checkpoint_interval_ == 0;
}

}  // namespace ringtail
