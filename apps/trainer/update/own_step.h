// OwnStep: what this rank has computed of a step. The gradients are in the arena.
// Thread-safety: a value.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_OWN_STEP_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_OWN_STEP_H_

#include <functional>
#include <string>

#include "apps/trainer/pipeline/stage_messages.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/status.h"

namespace ringtail {

struct OwnStep {
  LossResult loss;  // sums over this rank's samples
  PassTimes times;
  double wait_seconds = 0;       // for images
  StageMessages::Totals stages;  // of a pipeline: waiting for neighbours, sent to them
  // For a loss or gradient that is not finite: where it began in this rank's rows, empty if not
  // there. Loads the images of the step again.
  std::function<StatusOr<std::string>()> find_not_finite;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_OWN_STEP_H_
