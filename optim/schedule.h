// Learning-rate schedules: pure functions of the step. optim.proto has the formulas. A run passes
// the config after batch scaling (optim/batch_scaling.h). Steps are those of a batch that has not
// grown (optim/batch_growth.h).
#ifndef RINGTAIL_OPTIM_SCHEDULE_H_
#define RINGTAIL_OPTIM_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "optim/optim.pb.h"

namespace ringtail {

// The learning rate of `step` (0-based) in a run of `total_steps` with `steps_per_epoch` steps
// each. Pure; requires ValidateSchedule (optim/schedule_validation.h) to have passed, 0 <= step,
// total_steps >= 1, steps_per_epoch > 0.
double LearningRate(const OptimConfig& config, int64_t step, int64_t total_steps,
                    double steps_per_epoch);

// The factor by which the schedule's rate is below its highest value so far: at least 1, infinite
// at a rate of 0, never decreasing from step to step. The warm-up does not count. Pure; same
// requirements as LearningRate.
double RateReduction(const OptimConfig& config, int64_t step, int64_t total_steps,
                     double steps_per_epoch);

std::string DescribeSchedule(
    const OptimConfig& config);  // "cosine from 0.2 after 2 epochs of warm-up"

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_SCHEDULE_H_
