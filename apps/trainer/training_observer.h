// TrainingObserver: is told of a run's steps, rounds and evaluations. The trainer itself never prints.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_OBSERVER_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_OBSERVER_H_

#include <string>

#include "apps/trainer/training_plan.h"
#include "core/storage/metrics.h"

namespace ringtail {

class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void OnStep(const Metrics& /*step*/, const TrainingPlan& /*plan*/) {}
  // Of steps that were exchanged together, after the last of them (Metrics::Kind::kRound).
  virtual void OnRound(const Metrics& /*round*/) {}
  // Before the first step of a larger batch (optim/batch_growth.h).
  virtual void OnBatchGrowth(const std::string& /*description*/) {}
  virtual void OnEvaluation(const Metrics& /*evaluation*/, bool /*best_so_far*/) {}
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_OBSERVER_H_
