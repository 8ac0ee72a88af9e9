#include "layers/convolution/image/image_bf16_convolution.h"

#include "core/round.h"
#include "layers/convolution/image/image_bf16_forward.h"
#include "layers/convolution/image/image_bf16_weights.h"
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

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateImageBf16(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction) {
  if (!IsSupported(problem)) return nullptr;
  if (direction == ConvolutionDirection::kForward) {
    return std::make_unique<ImageBf16Forward>(problem);
  }
  if (direction == ConvolutionDirection::kBackwardWeights) {
    return std::make_unique<ImageBf16Weights>(problem);
  }
  return nullptr;
}

}  // namespace ringtail
