// The gradient of a fused activation, from its output:
// diff = act'(dst) * diff, in place and in parallel.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_

#include <cstdint>

#include "layers/layer.h"

namespace ringtail {

// Over `elements` floats of one layout; kNone does nothing.
void ApplyActivationGradient(Activation activation, const float* dst, float* diff,
                             int64_t elements);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_
