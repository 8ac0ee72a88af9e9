// ProgressListener: says where the computation is, so that a slow step is not taken for a hang.
// Thread-safety: the trainer thread. Cost: an atomic operation for each parameter.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_PROGRESS_LISTENER_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_PROGRESS_LISTENER_H_

#include "apps/trainer/update/gradient_pass.h"
#include "dist/liveness/progress.h"

namespace ringtail {

class ProgressListener : public GradientListener {
 public:
  explicit ProgressListener(Progress* progress) : progress_(progress) {}
  void OnLoss(const LossResult& /*loss*/) override { progress_->Enter(Phase::kBackward); }
  void OnReady(const Parameter& /*parameter*/) override { progress_->Tick(); }

 private:
  Progress* const progress_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_PROGRESS_LISTENER_H_
