#include "layers/activations/activation_gradient.h"

#include "layers/kernels/activation.h"
#include "layers/parallel_blobs.h"

namespace ringtail {

void ApplyActivationGradient(Activation activation, const BlobDesc& desc, const float* dst,
                             float* diff) {
  if (activation == Activation::kNone) return;
  const float low = LowerBound(activation), high = UpperBound(activation);
  const auto mask = RT_KERNEL(ClampGradient);
  ForEachElementRange(desc, [&](int64_t begin, int64_t end) {
    mask(dst + begin, diff + begin, end - begin, low, high, diff + begin);
  });
}

}  // namespace ringtail
