// Ranges of the fields of optim.proto that make the learning rate: the rate itself, warm-up,
// schedule, batch scaling and batch growth. (Each rule checks its own fields: Optimizer::Create.)
// Thread-safety: a pure function.
#ifndef RINGTAIL_OPTIM_SCHEDULE_VALIDATION_H_
#define RINGTAIL_OPTIM_SCHEDULE_VALIDATION_H_

#include "core/config/config_source.h"
#include "core/status.h"
#include "optim/optim.pb.h"

namespace ringtail {

// InvalidArgument for the first number out of its range; `source` (may be null) points at it.
Status ValidateSchedule(const OptimConfig& config, const ConfigSource* source);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_SCHEDULE_VALIDATION_H_
