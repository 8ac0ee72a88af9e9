// A step's update as a run makes it; and how much of the optimizer's part can be prepared
// (optim/prepared_step.h), in time: what the step is shorter by if all of it has been.
// Thread-safety: the trainer thread only. Cost of the latter: as many steps as `runs`, with the
// gradients that are there. Memory: one block of the arena's layout, meanwhile.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_
#define RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "optim/optimizer.h"
#include "optim/weight_average.h"

namespace ringtail {

// What a run does with a step's gradients (AllreduceUpdate): each pass over all weights counts.
class UpdateOfStep {
 public:
  // `optimizer` is that of `arena`; both must outlive this object.
  UpdateOfStep(const OptimConfig& config, Optimizer* optimizer, ParameterArena* arena);
  // Of the gradients of `batch` images that are there. The seconds of the optimizer alone.
  double Update(int64_t step, int64_t batch);

  static constexpr double kLearningRate = 1e-3;  // small, so that values stay finite and normal

 private:
  const double clip_norm_;
  Optimizer* const optimizer_;
  ParameterArena* const arena_;
  std::optional<WeightAverage> average_;
};

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
