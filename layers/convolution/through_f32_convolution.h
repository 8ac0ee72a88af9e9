// An algorithm for f32 on bf16 blobs: widens what it reads into scratch, and rounds what it wrote.
// Products and sums are then as precise as the algorithm's in f32, and only blobs are rounded. Cost:
// a pass over each bf16 blob. It applies a batch norm's map to src if the algorithm does; the other
// fusions are left to the neighbours.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_THROUGH_F32_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_THROUGH_F32_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// The problem of such an algorithm: the same on f32 blobs, without the fusions that it is not asked
// for.
ConvolutionProblem AsF32Problem(const ConvolutionProblem& problem);

// `algorithm` is one for AsF32Problem(problem) in that direction. Its name is the algorithm's with
// ":f32".
std::unique_ptr<ConvolutionAlgorithm> ThroughF32(const ConvolutionProblem& problem,
                                                 ConvolutionDirection direction,
                                                 std::unique_ptr<ConvolutionAlgorithm> algorithm);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_THROUGH_F32_CONVOLUTION_H_
