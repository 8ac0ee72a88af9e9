// A step's update as a run makes it; and what of the optimizer's part can be prepared
// (optim/prepared_step.h), in time.
// Thread-safety: the trainer thread only. Cost of the latter: as many steps as `runs`, with the
// gradients that are there. Memory: one block of the arena's layout, meanwhile; with averaged weights
// another one.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_
#define RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "optim/optimizer.h"
#include "optim/weight_average.h"

namespace ringtail {

// Seconds.
struct UpdateParts {
  double norm_s = 0, optimizer_s = 0, average_s = 0;
};

// What a run does with a step's gradients (AllreduceUpdate): each pass over all weights counts.
class UpdateOfStep {
 public:
  // `optimizer` is that of `arena`; both must outlive this object.
  UpdateOfStep(const OptimConfig& config, Optimizer* optimizer, ParameterArena* arena);
  // Of the gradients of `batch` images that are there.
  UpdateParts Update(int64_t step, int64_t batch);

  static constexpr double kLearningRate = 1e-3;  // small, so that values stay finite and normal

 private:
  const double clip_norm_;
  Optimizer* const optimizer_;
  ParameterArena* const arena_;
  std::optional<WeightAverage> average_;
};

struct MeasuredUpdate {
  double grad_scale = 1;   // of the steps that are made
  double optimizer_s = 0;  // of a step without preparation
  int64_t first_step = 0, runs = 1;
};

struct Preparation {
  // For each parameter, in proportion to Optimizer::PreparableWork. Empty: the rule prepares nothing,
  // or clips by the norm of all gradients.
  std::vector<double> seconds;
  double longer_s = 0;  // than optimizer_s, with all of it prepared: >= 0
};

Preparation MeasurePreparation(const OptimConfig& config, const MeasuredUpdate& update,
                               Optimizer* optimizer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_UPDATE_H_
