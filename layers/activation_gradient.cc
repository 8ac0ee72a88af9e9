#include "layers/activation_gradient.h"

#include "core/parallel_for.h"
#include "layers/kernels/elementwise.h"

namespace ringtail {

void ApplyActivationGradient(Activation activation, const float* dst, float* diff,
                             int64_t elements) {
  if (activation == Activation::kNone) return;
  constexpr int64_t kGrain = 1 << 14;  // below this a thread costs more than it saves
  const auto kernel =
      activation == Activation::kRelu ? RT_KERNEL(ReluBackward) : RT_KERNEL(Relu6Backward);
  ParallelFor(elements, kGrain,
              [&](int64_t begin, int64_t end) { kernel(dst + begin, diff + begin, end - begin); });
}

}  // namespace ringtail
