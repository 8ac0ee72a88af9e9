// DepthwiseCall: one call of a depthwise convolution's algorithm with the maps of its neighbours or
// without, on memory that is guarded and full of NaN.
//
//   const ConvolutionProblem p = DepthwiseProblem({3, 1, 2, 24, 7, 7, 1, 1, 1, 1});
//   const DepthwiseTensors data(p);
//   DepthwiseResult r = RunDepthwise(p, data, ConvolutionDirection::kForward, {.moments = true});
#ifndef RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEPTHWISE_CALL_H_
#define RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEPTHWISE_CALL_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

struct DepthwiseCase {
  int64_t kernel, stride, N, C, H, W;
  int64_t top, left, bottom, right;  // padding
};
std::ostream& operator<<(std::ostream& out, const DepthwiseCase& c);

// Every size up to two groups of outputs and every place of a window's edge in them.
std::vector<DepthwiseCase> DepthwiseCases();

ConvolutionProblem DepthwiseProblem(const DepthwiseCase& c, bool bias = true,
                                    Activation activation = Activation::kNone);

// Plain tensors of one problem.
struct DepthwiseTensors {
  explicit DepthwiseTensors(const ConvolutionProblem& p);
  std::vector<float> src, diff_dst, weight, bias;
};

enum class DepthwiseMapped { kNot, kOnTheWay, kBefore };

struct DepthwiseOptions {
  int threads = 1;
  DepthwiseMapped src = DepthwiseMapped::kNot, diff_dst = DepthwiseMapped::kNot;
  bool moments = false;
  bool sums = false;  // of diff_src; src comes mapped on the way
};

struct DepthwiseResult {
  std::vector<float> blob, diff_weight, diff_bias;  // blob: dst or diff_src, plain
  std::vector<double> mean, m2;                     // of dst
  std::vector<double> g, gx;                        // of diff_src
  bool operator==(const DepthwiseResult&) const = default;
};

// Fails the test if memory next to a buffer or diff_dst was written, or padding is not zero.
DepthwiseResult RunDepthwise(const ConvolutionProblem& p, const DepthwiseTensors& data,
                             ConvolutionDirection direction, const DepthwiseOptions& options = {});

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_CONVOLUTION_DEPTHWISE_CALL_H_
