// The global norm of the gradient, and clipping by it (Pascanu et al. 2013).
// Thread-safety: the trainer thread only. Cost: one parallel pass over the gradients.
#ifndef RINGTAIL_OPTIM_GRADIENT_NORM_H_
#define RINGTAIL_OPTIM_GRADIENT_NORM_H_

#include <span>

#include "core/parameter.h"

namespace ringtail {

// sqrt(sum g^2) over the whole gradient block, times grad_scale; summed in double in a fixed order,
// so the same bits for any number of threads.
double GradientNorm(const ParameterArena& arena, double grad_scale);

// sum g^2 over some gradients, in the same way.
double GradientSquares(std::span<const float> grads);

// The factor on the gradient: min(1, clip / norm); 1 if clip is 0.
double ClipFactor(double norm, double clip);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_GRADIENT_NORM_H_
