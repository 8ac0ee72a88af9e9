// Convolution by oneDNN's direct kernels (Georganas et al. 2018): every window, stride, dilation
// and number of groups. Where oneDNN is slow in the layouts that the net has, it works in those
// that it prefers, on copies in scratch. Weights are reordered into its blocked layout in every
// call: they change every step, so keeping them would save nothing. With bf16 operands that reorder
// rounds them, too; gradients of weights and biases are f32.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_ONEDNN_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_ONEDNN_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// The layout in which oneDNN would write dst: 1, 8 or 16 channels to a block; and whether it has
// more than plain loops for it. problem.dst.block is not read. Throws dnnl::error, as the function
// below: callers turn it into a Status.
struct OneDnnOutput {
  int64_t block = 1;
  bool is_fast = false;
};
OneDnnOutput OneDnnOutputOf(const ConvolutionProblem& problem);

// On f32 blobs.
std::unique_ptr<ConvolutionAlgorithm> CreateOneDnnConvolution(const ConvolutionProblem& problem,
                                                              ConvolutionDirection direction);
// On bf16 operands, into which an f32 src is rounded. Null where oneDNN has no kernel for them: they
// need AVX-512, and are slower than f32 without AVX512-BF16 or AMX.
std::unique_ptr<ConvolutionAlgorithm> CreateOneDnnBf16Convolution(const ConvolutionProblem& problem,
                                                                  ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_ONEDNN_CONVOLUTION_H_
