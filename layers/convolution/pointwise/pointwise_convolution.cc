#include "layers/convolution/pointwise/pointwise_convolution.h"

#include <utility>

#include "layers/convolution/pointwise/pointwise_backward.h"
#include "layers/convolution/pointwise/pointwise_data.h"
#include "layers/convolution/pointwise/pointwise_strided.h"
#include "layers/convolution/pointwise/pointwise_weights.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

bool IsPointwise(const ConvolutionProblem& problem) {
  const Window& w = problem.window;
  const int64_t lanes = RT_KERNEL(PointwiseLanes)();
  return w.KH == 1 && w.KW == 1 && w.PT == 0 && w.PL == 0 && w.PB == 0 && w.PR == 0 &&
         problem.groups == 1 && problem.src.block == lanes && problem.dst.block == lanes;
}

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreatePointwise(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction) {
  if (!IsPointwise(problem)) return nullptr;
  if (problem.window.SH != 1 || problem.window.SW != 1) {
    if (direction == ConvolutionDirection::kBackward) return nullptr;
    auto dense = CreatePointwise(PointwiseStrided::DenseProblem(problem), direction);
    return std::make_unique<PointwiseStrided>(problem, direction, std::move(dense));
  }
  if (direction == ConvolutionDirection::kBackward) {
    if (!PointwiseBackward::Fits(problem)) return nullptr;
    return std::make_unique<PointwiseBackward>(problem);
  }
  if (direction == ConvolutionDirection::kBackwardWeights) {
    return std::make_unique<PointwiseWeights>(problem);
  }
  return std::make_unique<PointwiseData>(problem, direction);
}

}  // namespace ringtail
