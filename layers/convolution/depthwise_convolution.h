// Depthwise convolution (one filter per channel) on own kernels, in all three directions.
//
// Its work is moving memory: 9 multiply-adds per float of dst for a 3x3 window. Every direction
// reads its blobs once and writes its result once (layers/kernels/depthwise.h); the unit of work is
// one channel block of one sample.
//
//   direction          scratch
//   forward            weights (channel block, K K, lane) and bias (channel block, lane); rings
//   backward-data      weights (channel block, K K, lane)
//   backward-weights   sums (group of 4 samples, channel block, K K + 1, lane), the last: the
//                      bias'; rings
//
// Both that read src can map it on the way (takes_affine), row by row through a ring (K, W, lane)
// per thread.
// Backward-weights adds samples up within groups and then the groups, both in order: its result is,
// as that of the other directions, the same to the bit for every number of threads.
// Source: Howard et al. 2017, "MobileNets".
#ifndef RINGTAIL_LAYERS_CONVOLUTION_DEPTHWISE_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_DEPTHWISE_CONVOLUTION_H_

#include <memory>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// Null unless the problem is depthwise with a dense window of 3x3 or 5x5, stride 1 or 2 (the same
// for rows and columns), and blobs in blocks of the selected kernels' lanes. Any padding; C need
// not fill its last block.
std::unique_ptr<ConvolutionAlgorithm> CreateDepthwise(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_DEPTHWISE_CONVOLUTION_H_
