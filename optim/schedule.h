// Learning-rate schedules: pure functions of the step. Formulas stand at the fields of optim.proto.
// What the config says is for its reference batch; a run asks with what optim/batch_scaling.h has
// made of it. A step is one of a batch that has not grown (optim/batch_growth.h).
#ifndef RINGTAIL_OPTIM_SCHEDULE_H_
#define RINGTAIL_OPTIM_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "optim/optim.pb.h"

namespace ringtail {

// The learning rate of `step` (0-based) in a run of `total_steps` with `steps_per_epoch` steps
// each. Pure; requires ValidateSchedule (optim/schedule_validation.h) to have passed, 0 <= step, total_steps >= 1,
// steps_per_epoch > 0.
double LearningRate(const OptimConfig& config, int64_t step, int64_t total_steps,
                    double steps_per_epoch);

// How many times lower the schedule's rate is than its highest before: 1 as long as it does not
// fall, never less, and infinite at a rate of 0. A warm-up is no part of it. Never falls from step
// to step. Pure; requires what LearningRate does.
double RateReduction(const OptimConfig& config, int64_t step, int64_t total_steps,
                     double steps_per_epoch);

std::string DescribeSchedule(
    const OptimConfig& config);  // "cosine from 0.2 after 2 epochs of warm-up"

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_SCHEDULE_H_
