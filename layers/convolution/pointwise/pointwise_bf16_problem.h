// What 1x1 convolutions with bf16 products are made for. Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_PROBLEM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_PROBLEM_H_

#include "layers/convolution/convolution_algorithm.h"
#include "layers/kernels/bf16/bf16_products.h"

namespace ringtail {

// 1x1, stride 1, no padding, one group, bf16 blobs in blocks of a register, on a machine that
// multiplies bf16.
inline bool IsPointwiseBf16(const ConvolutionProblem& p) {
  const Window& w = p.window;
  const auto is_blocked = [](const BlobDesc& desc) {
    return desc.type == BlobType::kBf16 && desc.block == kBf16ProductLanes;
  };
  return w.KH == 1 && w.KW == 1 && w.SH == 1 && w.SW == 1 && w.PT == 0 && w.PL == 0 && w.PB == 0 &&
         w.PR == 0 && p.groups == 1 && is_blocked(p.src) && is_blocked(p.dst) &&
         RT_KERNEL(HasBf16Products)();
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_PROBLEM_H_
