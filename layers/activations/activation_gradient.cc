#include "layers/activations/activation_gradient.h"

#include "core/parallel_for.h"
#include "layers/kernels/activation.h"

namespace ringtail {

void ApplyActivationGradient(Activation activation, const float* dst, float* diff,
                             int64_t elements) {
  if (activation == Activation::kNone) return;
  constexpr int64_t kGrain = 1 << 14;  // below this a thread costs more than it saves
  const float low = LowerBound(activation), high = UpperBound(activation);
  const auto mask = RT_KERNEL(ClampGradient);
  ParallelFor(elements, kGrain, [&](int64_t begin, int64_t end) {
    mask(dst + begin, diff + begin, end - begin, low, high, diff + begin);
  });
}

}  // namespace ringtail
