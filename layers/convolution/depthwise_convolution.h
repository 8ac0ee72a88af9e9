// Depthwise convolution (one filter per channel) on kernels of our own, in every direction.
//
// Its work is moving memory: 9 multiply-adds per float of dst for a 3x3 window. Every direction
// reads its blobs once and writes its result once (layers/kernels/depthwise.h); the unit of work is
// one channel block of one sample. Results of 16 MB and more are written past the caches.
//
//   direction   scratch
//   forward     weights (channel block, K K, lane) and bias (channel block, lane); per thread a
//               ring of src and, past the caches, a plane of dst
//   backward    weights; sums (slot of 4 samples, channel block, K K + 1, lane), the last: the
//               bias'; per thread rings of src and diff_dst, and a row of diff_src
//
// Backward computes both gradients in one pass over diff_dst; backward-data and backward-weights
// are the same pass without the other's half. src can be mapped on the way (takes_affine), and
// diff_dst (takes_gradient_map), row by row through a ring (K, width, lane). Forward takes the
// moments of each plane of dst while it lies in the second-level cache, backward the sums of
// diff_src that a batch norm before wants, row by row, to the same bits as it would.
// Backward sums samples within slots and then the slots, both in order: its result is, as
// forward's, the same to the bit for every number of threads.
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
