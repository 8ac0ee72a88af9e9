#include "layers/activations/tanh.h"

#include <cmath>

#include "layers/kernels/activation.h"

namespace ringtail {

TanhLayer::TanhLayer(const TanhConfig&) {}

void TanhLayer::Map(const float* src, int64_t n, float* dst) const {
  for (int64_t i = 0; i < n; ++i) dst[i] = std::tanh(src[i]);
}

void TanhLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                            float* diff_src) const {
  RT_KERNEL(TanhGradient)(dst, diff_dst, n, diff_src);
}

// Forward is the C library's function, value by value.
std::string TanhLayer::Implementation() const {
  return std::string("scalar / ") + KernelImplementation();
}

}  // namespace ringtail
