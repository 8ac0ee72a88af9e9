// Optimizer: turns gradients into new weights, one pass over the whole parameter block.
//
// Gradients arrive as sums over samples; `grad_scale` (1 / samples, times the clip factor) makes
// them means without an extra pass. Gradients are not changed. State (momentum ...) is kept in
// blocks of the arena's layout, so parameter i's state has the parameter's offset. Weight decay
// applies to kConvolutionWeight and kLinearWeight only unless decay_vectors. Rates fall with depth
// by layer_decay. Thread-safety: the trainer thread only. Cost: one parallel pass over weights,
// gradients and state.
#ifndef RINGTAIL_OPTIM_OPTIMIZER_H_
#define RINGTAIL_OPTIM_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/config/config_source.h"
#include "core/fast_bf16_products.h"
#include "core/parameter.h"
#include "core/status.h"
#include "optim/optim.pb.h"
#include "optim/prepared_step.h"

namespace ringtail {

struct OptimizerOptions {
  // Whether the rule may take products of bf16, if it has any (TakesBf16Products). The bits are not
  // those of f32: all that make the same update have to say the same. Needs a processor with them.
  bool bf16_products = FastBf16Products();
  const ConfigSource* source = nullptr;  // of the config; may be null
};

class Optimizer {
 public:
  // A named block of state, for checkpoints ("momentum"; same layout as the arena's values).
  struct StateBlock {
    std::string name;
    std::span<float> values;
  };

  // InvalidArgument for values out of range, at their place in the file.
  // ValidateSchedule() (optim/schedule_validation.h) checks the rate and its schedule.
  static StatusOr<std::unique_ptr<Optimizer>> Create(const OptimConfig& config,
                                                     ParameterArena* arena,
                                                     const OptimizerOptions& options = {});
  // Whether the configured rule copes with a larger batch without batch_scaling. Every rule class
  // states this: `static constexpr bool kAdaptsToBatch`.
  static bool AdaptsToBatch(const OptimConfig& config);
  // Whether the new value of an element depends on that element alone (but for clipping), so that a
  // slice of a parameter is updated as it would be within the whole; each class states this, too.
  static bool UpdatesElementwise(const OptimConfig& config);
  // Whether the bits of an update depend on OptimizerOptions::bf16_products.
  static bool TakesBf16Products(const OptimConfig& config);
  virtual ~Optimizer() = default;

  // step: 0, 1, 2, ... of the run.
  virtual void Step(int64_t step, double learning_rate, double grad_scale) = 0;

  // A rule whose step computes much for each parameter can do so for some of them before the
  // gradients of the others are known (prepared_step.h). By parameter, how much that is in
  // comparison; empty: this rule prepares nothing.
  virtual std::vector<double> PreparableWork() const { return {}; }
  // Of parameters whose gradients are final, each at most once. Changes neither weights nor state.
  virtual void Prepare(std::span<const size_t> /*parameters*/, PreparedStep* /*prepared*/) {}
  // Step with the grad_scale of `prepared`, and with the same bits. Forgets what was prepared.
  virtual void StepPrepared(int64_t step, double learning_rate, PreparedStep* prepared);

  virtual std::vector<StateBlock> state() = 0;
  virtual std::string Describe() const = 0;  // "SGD momentum=0.9 nesterov weight_decay=0.0005"

  // By parameter, the first step that updates it (empty: step 0): a rule that counts its updates
  // (bias_correction.h) begins there. A function of the run's plan, and so not in state().
  void set_first_steps(std::vector<int64_t> steps) { first_steps_ = std::move(steps); }

 protected:
  const std::vector<int64_t>& first_steps() const { return first_steps_; }

 private:
  std::vector<int64_t> first_steps_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_OPTIMIZER_H_
