#include "apps/trainer/training_plan.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ringtail {
namespace {

// Whether a multiple of `interval` lies in (since, step]; never if it is 0.
bool PassesMultiple(int64_t since, int64_t step, int64_t interval) {
  return step > 0 && interval > 0 && step / interval > since / interval;
}

}  // namespace

TrainingPlan::TrainingPlan(const RunConfig& config, int64_t batches_per_epoch,
                           const PlanGrowth& growth)
    : growth_run_{.images_per_batch = growth.images_per_batch,
                  .batches_per_epoch = batches_per_epoch,
                  .most_batches = growth.most_batches} {
  RT_CHECK(batches_per_epoch >= 1, "an epoch must have at least one batch");
  const TrainConfig& train = config.train();
  growth_run_.total_batches = std::max<int64_t>(1, BatchAt(train.epochs()));
  stages_ = GrowthStages(growth.optim, growth_run_);
  const GrowthStage& last = stages_.back();
  const int64_t left = growth_run_.total_batches - last.first_batch;
  total_steps_ = last.first_step + (2 * left + last.batches) / (2 * last.batches);
  // Less than half a step would remain for the last stage.
  if (last.first_step == total_steps_) stages_.pop_back();
  thaw_step_ = train.freeze_epochs() > 0 ? FirstStepFrom(BatchAt(train.freeze_epochs())) : kNever;
  evaluation_interval_ = std::max<int64_t>(1, BatchAt(train.evaluate_every_epochs()));
  checkpoint_interval_ = train.checkpoint_every_steps();
  comparison_interval_ = config.dist().check_every_steps();
  phases_.push_back({0, config.data().image_size()});
  for (const PhaseConfig& phase : train.phase()) {
    phases_.push_back({BatchAt(phase.from_epoch()), phase.image_size()});
  }
}

int64_t TrainingPlan::BatchAt(double epoch) const {
  return std::llround(
      std::min(epoch * static_cast<double>(batches_per_epoch()), static_cast<double>(kNever)));
}

const GrowthStage& TrainingPlan::StageOf(int64_t step) const {
  const auto after =
      std::find_if(stages_.begin() + 1, stages_.end(),
                   [&](const GrowthStage& stage) { return stage.first_step > step; });
  return *std::prev(after);
}

int64_t TrainingPlan::BatchesBefore(int64_t step) const {
  const GrowthStage& stage = StageOf(step);
  return stage.first_batch + (step - stage.first_step) * stage.batches;
}

// The first step that begins with this batch, or with a later one.
int64_t TrainingPlan::FirstStepFrom(int64_t batch) const {
  if (batch >= kNever) return kNever;
  const auto after =
      std::find_if(stages_.begin() + 1, stages_.end(),
                   [&](const GrowthStage& stage) { return stage.first_batch > batch; });
  const GrowthStage& stage = *std::prev(after);
  return stage.first_step + (batch - stage.first_batch + stage.batches - 1) / stage.batches;
}

int64_t TrainingPlan::BatchesOf(int64_t step) const { return StageOf(step).batches; }

size_t TrainingPlan::StageBeginningAt(int64_t step) const {
  const GrowthStage& stage = StageOf(step);
  return stage.first_step == step ? static_cast<size_t>(&stage - stages_.data()) : 0;
}

const TrainingPlan::Phase& TrainingPlan::PhaseAt(int64_t step) const {
  const int64_t batch = BatchesBefore(step);
  const auto after = std::find_if(phases_.begin(), phases_.end(),
                                  [&](const Phase& phase) { return phase.first_batch > batch; });
  return *std::prev(after);
}

// The last one, at the end of the run, counts even if it comes early.
int64_t TrainingPlan::EvaluationsBetween(int64_t since, int64_t step) const {
  const auto passed = [&](int64_t steps) { return BatchesBefore(steps) / evaluation_interval_; };
  const bool early = step >= total_steps_ && BatchesBefore(step) % evaluation_interval_ != 0;
  return passed(step) - passed(since) + (early && step > since ? 1 : 0);
}

double TrainingPlan::EpochAt(int64_t step) const {
  return static_cast<double>(BatchesBefore(step)) / static_cast<double>(batches_per_epoch());
}

double TrainingPlan::WorkOfBatch(const Phase& phase) const {
  const auto side = static_cast<double>(phase.image_size);
  const auto unit = static_cast<double>(phases_.front().image_size);
  return side * side / (unit * unit);
}

double TrainingPlan::WorkOf(int64_t step) const {
  return static_cast<double>(BatchesOf(step)) * WorkOfBatch(PhaseAt(step));
}

double TrainingPlan::WorkLeft(int64_t step) const {
  const int64_t done = BatchesBefore(step), all = BatchesBefore(total_steps_);
  double work = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const int64_t end = i + 1 < phases_.size() ? phases_[i + 1].first_batch : all;
    const int64_t batches = std::min(end, all) - std::max(phases_[i].first_batch, done);
    if (batches > 0) work += static_cast<double>(batches) * WorkOfBatch(phases_[i]);
  }
  return work;
}

bool TrainingPlan::EvaluationIsDue(int64_t since, int64_t step) const {
  if (step <= 0) return false;
  const auto passed = [&](int64_t steps) { return BatchesBefore(steps) / evaluation_interval_; };
  return step >= total_steps_ || passed(step) > passed(since);
}

bool TrainingPlan::CheckpointIsDue(int64_t since, int64_t step) const {
  return PassesMultiple(since, step, checkpoint_interval_);
}

bool TrainingPlan::ComparisonIsDue(int64_t since, int64_t step) const {
  return PassesMultiple(since, step, comparison_interval_);
}

}  // namespace ringtail
