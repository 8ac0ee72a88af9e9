#include "layers/convolution/image/image_bf16_convolution.h"

#include "core/round.h"
#include "layers/convolution/image/image_bf16_forward.h"
#include "layers/convolution/image/image_bf16_weights.h"
#include "layers/convolution/image/image_tiles_forward.h"
#include "layers/convolution/image/image_tiles_weights.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {
namespace {

bool IsSupported(const ConvolutionProblem& p) {
  const Window& w = p.window;
  const int64_t taps = RoundUp(w.KW * p.src.C, kBf16ProductLanes);
  return p.groups == 1 && w.DH == 1 && w.DW == 1 && p.src.type == BlobType::kF32 &&
         p.src.block == 1 && p.src.C <= kMostImageChannels &&
         taps + w.SW * p.src.C <= kImageLineSlack && p.dst.type == BlobType::kBf16 &&
         p.dst.block == kBf16ProductLanes && p.dst.C % kBf16ProductLanes == 0 &&
         RT_KERNEL(HasBf16Products)();
}

template <typename Forward, typename Weights>
std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                             ConvolutionDirection direction) {
  if (direction == ConvolutionDirection::kForward) return std::make_unique<Forward>(problem);
  if (direction == ConvolutionDirection::kBackwardWeights) {
    return std::make_unique<Weights>(problem);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateImageBf16(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction) {
  if (!IsSupported(problem)) return nullptr;
  return Create<ImageBf16Forward, ImageBf16Weights>(problem, direction);
}

std::unique_ptr<ConvolutionAlgorithm> CreateImageTiles(const ConvolutionProblem& problem,
                                                       ConvolutionDirection direction) {
  if (!HasBf16Tiles() || !IsSupported(problem)) return nullptr;
  return Create<ImageTilesForward, ImageTilesWeights>(problem, direction);
}

}  // namespace ringtail
