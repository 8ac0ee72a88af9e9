// The gradient of a fused activation, from its output: diff = act'(dst) * diff, in place and in
// parallel. Thread-safety: the trainer thread. Cost: reads dst and diff and writes diff, once.
#ifndef RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_
#define RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_

#include "layers/activation.h"
#include "layers/blob.h"

namespace ringtail {

// dst and diff are blobs of `desc`; kNone does nothing.
void ApplyActivationGradient(Activation activation, const BlobDesc& desc, const float* dst,
                             float* diff);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ACTIVATIONS_ACTIVATION_GRADIENT_H_
