#include "layers/convolution/candidates.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/convolution/image/image_bf16_convolution.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/pointwise/pointwise_bf16_data.h"
#include "layers/convolution/pointwise/pointwise_bf16_weights.h"
#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "layers/convolution/through_f32_convolution.h"
#include "layers/convolution/tiles/tile_convolution.h"
#include "layers/convolution/tiles/tile_weights.h"
#include "layers/convolution/winograd/winograd_convolution.h"
#include "layers/convolution/winograd/winograd_strided_convolution.h"

namespace ringtail {
namespace {

using Algorithm = std::unique_ptr<ConvolutionAlgorithm>;
using Direction = ConvolutionDirection;

Algorithm CreateWinograd4x4(const ConvolutionProblem& problem, Direction direction) {
  return CreateWinograd(problem, direction, /*tile=*/4);
}
Algorithm CreateWinograd2x2(const ConvolutionProblem& problem, Direction direction) {
  return CreateWinograd(problem, direction, /*tile=*/2);
}

// An algorithm of our own: the policies that ask for it, its name() without the instruction set
// that may follow (":avx512"), what creates it, or null where it does not apply, and whether it
// reads and writes bf16 blobs (sums and products are f32).
struct OwnAlgorithm {
  ConvolutionPolicy policy;
  // Asks for it without both gradients in one pass; the same as `policy` where it has no such pass.
  ConvolutionPolicy separate_policy;
  std::string_view name;
  Algorithm (*create)(const ConvolutionProblem&, Direction);
  bool on_bf16 = false;
};
constexpr OwnAlgorithm kOwnAlgorithms[] = {
    {WINOGRAD_4X4, WINOGRAD_4X4, "winograd 4x4", CreateWinograd4x4, true},
    {WINOGRAD_2X2, WINOGRAD_2X2, "winograd 2x2", CreateWinograd2x2, true},
    {WINOGRAD_STRIDE_2, WINOGRAD_STRIDE_2, "winograd stride 2", CreateWinogradStrided, true},
    {DEPTHWISE, DEPTHWISE_SEPARATE, "depthwise", CreateDepthwise},
    {POINTWISE, POINTWISE_SEPARATE, "pointwise", CreatePointwise},
};

bool IsF32(const ConvolutionProblem& problem) {
  return problem.src.type == BlobType::kF32 && problem.dst.type == BlobType::kF32;
}

void AddUnlessNull(Algorithm algorithm, ConvolutionCandidates* candidates) {
  if (algorithm != nullptr) candidates->push_back(std::move(algorithm));
}

// By our own algorithms; on bf16 blobs by those that run on them, and by the others through f32.
void AddOwn(const ConvolutionProblem& problem, Direction direction,
            ConvolutionCandidates* candidates) {
  const bool is_f32 = IsF32(problem);
  const ConvolutionProblem f32 = AsF32Problem(problem);
  for (const OwnAlgorithm& own : kOwnAlgorithms) {
    const bool through_f32 = !is_f32 && !own.on_bf16;
    Algorithm algorithm = own.create(through_f32 ? f32 : problem, direction);
    if (algorithm == nullptr) continue;
    candidates->push_back(through_f32 ? ThroughF32(problem, direction, std::move(algorithm))
                                      : std::move(algorithm));
  }
}

}  // namespace

ConvolutionCandidates FindCandidates(const ConvolutionProblem& problem, Direction direction) {
  ConvolutionCandidates candidates;
  if (IsF32(problem)) {
    AddUnlessNull(CreateOneDnnConvolution(problem, direction), &candidates);
  } else {
    if (problem.dst.type == BlobType::kBf16) {
      AddUnlessNull(CreateOneDnnBf16Convolution(problem, direction), &candidates);
      AddUnlessNull(TileConvolution::Create(problem, direction), &candidates);
      AddUnlessNull(TileWeights::Create(problem, direction), &candidates);
      AddUnlessNull(CreateImageTiles(problem, direction), &candidates);
      AddUnlessNull(CreateImageBf16(problem, direction), &candidates);
      AddUnlessNull(PointwiseBf16Data::Create(problem, direction), &candidates);
      AddUnlessNull(PointwiseBf16Weights::Create(problem, direction), &candidates);
      AddUnlessNull(CreateWinogradBf16(problem, direction), &candidates);
    }
    if (Algorithm onednn = CreateOneDnnConvolution(AsF32Problem(problem), direction)) {
      candidates.push_back(ThroughF32(problem, direction, std::move(onednn)));
    }
  }
  AddOwn(problem, direction, &candidates);
  return candidates;
}

std::unique_ptr<ConvolutionAlgorithm> TakeForced(ConvolutionCandidates* candidates,
                                                 ConvolutionPolicy policy, Direction direction) {
  const auto* own = std::ranges::find_if(kOwnAlgorithms, [&](const OwnAlgorithm& algorithm) {
    return policy == algorithm.policy || policy == algorithm.separate_policy;
  });
  if (own == std::end(kOwnAlgorithms)) {
    RT_CHECK(policy == ONEDNN, "every other policy has a row in kOwnAlgorithms");
    return std::move(candidates->front());
  }
  const bool separate = direction == Direction::kBackward && policy != own->policy;
  for (Algorithm& candidate : *candidates) {
    const std::string name = candidate->name();
    if (!separate && name.substr(0, name.find(':')) == own->name) return std::move(candidate);
  }
  return std::move(candidates->front());
}

int64_t OutputBlock(const ConvolutionProblem& any) {
  const ConvolutionProblem problem = AsF32Problem(any);
  const OneDnnOutput output = OneDnnOutputOf(problem);
  if (output.is_fast) return output.block;
  ConvolutionProblem as_src = problem;
  as_src.dst.block = problem.src.block;
  ConvolutionCandidates own;
  AddOwn(as_src, Direction::kForward, &own);
  return own.empty() ? output.block : as_src.dst.block;
}

}  // namespace ringtail
