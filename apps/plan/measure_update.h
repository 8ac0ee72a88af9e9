// How much of an optimizer's step can be prepared (optim/prepared_step.h), in time: what the step
// is shorter by if all of it has been.
// Thread-safety: the trainer thread only. Cost: as many steps as `runs`, with the gradients that
// are there. Memory: one block of the arena's layout, meanwhile.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_
#define RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace ringtail {

struct MeasuredUpdate {
  double learning_rate = 0, grad_scale = 1;  // of the steps that are made
  double optimizer_s = 0;                    // of a step without preparation
  int64_t first_step = 0, runs = 1;
};

// Seconds for each parameter, in proportion to Optimizer::PreparableWork; together at most
// optimizer_s.
// Empty: the rule prepares nothing, or clips by the norm of all gradients.
std::vector<double> MeasurePreparation(const OptimConfig& config, const MeasuredUpdate& update,
                                       Optimizer* optimizer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_
