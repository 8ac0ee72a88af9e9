// PreparedStep: what has been computed of an optimizer step while some of its gradients were still
// on their way.
//
//   gradients are final   [ fc conv5 ]        [ conv4 .. conv2 ]         [ conv1 ]
//   trainer thread        Begin | Prepare(fc, conv5) | Prepare(conv4 ..) | StepPrepared
//
// It belongs to the code that decides whether the step is made, and not to the optimizer: of a step
// that is left out nothing stays behind, as the next one begins by forgetting it.
// Memory: one block of the arena's layout, from the first time on that something is prepared.
// Thread-safety: the trainer thread; parameters' blocks may be written by several threads.
#ifndef RINGTAIL_OPTIM_PREPARED_STEP_H_
#define RINGTAIL_OPTIM_PREPARED_STEP_H_

#include <cstddef>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameter.h"

namespace ringtail {

class PreparedStep {
 public:
  // Of a step with this grad_scale (Optimizer::Step). Forgets what was prepared before.
  void Begin(double grad_scale);
  double grad_scale() const { return grad_scale_; }

  // For rules: a block for what is computed of a parameter, as large as the parameter. Once per
  // step and parameter.
  std::span<float> Add(const ParameterArena& arena, size_t parameter);
  // Empty: the parameter was not prepared.
  std::span<const float> Of(size_t parameter) const;

 private:
  double grad_scale_ = 0;
  AlignedBuffer block_;
  std::vector<std::span<float>> parts_;  // by parameter; empty: not prepared
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_PREPARED_STEP_H_
