// 1x1 convolutions as the matrix products that they are: pixels times channels, blobs read and
// written as they lie. One group, no padding, any stride.
//
//   forward           dst = act(src W^T + bias)       pointwise_data.h
//   backward-data     diff_src = diff_dst W           pointwise_data.h
//   backward-weights  diff_W = diff_dst^T src         pointwise_weights.h
//
// A larger stride reads every SH-th row's every SW-th pixel into scratch and continues from there.
// Results are the same bits for every number of threads.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null unless the convolution is of this kind and src and dst are in blocks of this machine's
// vectors.
std::unique_ptr<ConvolutionAlgorithm> CreatePointwise(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_CONVOLUTION_H_
