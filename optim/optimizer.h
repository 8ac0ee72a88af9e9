// Optimizer: turns gradients into new weights, one pass over the whole parameter block.
//
// Gradients arrive as sums over samples; `grad_scale` (1 / samples, times the clip factor) makes
// them means without an extra pass. Gradients are not changed. State (momentum ...) lies in blocks
// of the arena's layout, so parameter i's state is at the same offset. Weight decay applies to
// kConvolutionWeight and kLinearWeight only unless decay_vectors.
// Thread-safety: the trainer thread only.
// Cost: one parallel pass over weights, gradients and state.
#ifndef RINGTAIL_OPTIM_OPTIMIZER_H_
#define RINGTAIL_OPTIM_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/config/text_config.h"
#include "core/parameter.h"
#include "core/status.h"
#include "optim/optim.pb.h"

namespace ringtail {

class Optimizer {
 public:
  // A named block of state, for checkpoints ("momentum"; same layout as the arena's values).
  struct StateBlock {
    std::string name;
    std::span<float> values;
  };

  // InvalidArgument for values out of range, at their place in the file (`source` may be null). The
  // rate and its schedule are ValidateSchedule()'s (optim/schedule.h).
  static StatusOr<std::unique_ptr<Optimizer>> Create(const OptimConfig& config,
                                                     ParameterArena* arena,
                                                     const ConfigSource* source = nullptr);
  virtual ~Optimizer() = default;

  // step: 0, 1, 2, ... (bias correction of Adam uses step + 1).
  virtual void Step(int64_t step, double learning_rate, double grad_scale) = 0;
  virtual std::vector<StateBlock> state() = 0;
  virtual std::string Describe() const = 0;  // "SGD momentum=0.9 nesterov weight_decay=0.0005"
};

// sqrt(sum g^2) over the whole gradient block, times grad_scale; summed in double in a fixed order.
double GradientNorm(const ParameterArena& arena, double grad_scale);
// The factor for clipping by global norm (Pascanu et al. 2013): min(1, clip / norm);
// 1 if clip is 0.
double ClipFactor(double norm, double clip);

// Exponential moving average of weights and buffers (Polyak & Juditsky 1992; Tan & Le 2019):
//   average += (1 - d) (value - average),  d = min(decay, (1 + step) / (10 + step))
class WeightAverage {
 public:
  WeightAverage(double decay, ParameterArena* arena);  // starts as a copy of the arena's values
  void Update(int64_t step);  // after the optimizer's step; not while swapped
  void Swap();                // exchanges averages and weights; call again to exchange back
  std::span<float> values() const { return values_.floats(); }
  std::span<float> buffers() const { return buffers_.floats(); }

 private:
  double decay_;
  ParameterArena* arena_;
  AlignedBuffer values_, buffers_;
  bool swapped_ = false;  // the arena holds the averages
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_OPTIMIZER_H_
