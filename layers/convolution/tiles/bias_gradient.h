// The gradient of a convolution's bias from a bf16 blob in blocks of 16 channels:
//   diff_bias[k] = sum over samples and pixels of diff_dst[k], summed in double, rounded once to f32
// Only with AVX-512. Bits do not depend on threads. Cost: one reading of diff_dst.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_BIAS_GRADIENT_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_BIAS_GRADIENT_H_

#include "layers/blob.h"

namespace ringtail {

// `desc`: of diff_dst. diff_bias has desc.C floats.
void SumBiasGradient(const BlobDesc& desc, const float* diff_dst, float* diff_bias);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_BIAS_GRADIENT_H_
