#include "layers/activations/activation_gradient.h"

#include "layers/element_types/blob_elements.h"
#include "layers/kernels/activation.h"
#include "layers/parallel_blobs.h"

namespace ringtail {

void ApplyActivationGradient(Activation activation, const BlobDesc& desc, const float* dst,
                             float* diff) {
  if (activation == Activation::kNone) return;
  const float low = LowerBound(activation), high = UpperBound(activation);
  ForElementOf(desc.type, [&](auto element) {
    using Element = decltype(element);
    const auto mask = RT_KERNEL(ClampGradient<Element>);
    const Element* y = ElementsOf<Element>(dst);
    Element* d = ElementsOf<Element>(diff);
    ForEachElementRange(desc, [&](int64_t begin, int64_t end) {
      mask(y + begin, d + begin, end - begin, low, high, d + begin);
    });
  });
}

}  // namespace ringtail
