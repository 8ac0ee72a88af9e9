#include "layers/activations/sigmoid.h"

#include <cmath>

#include "layers/kernels/activation.h"

namespace ringtail {

SigmoidLayer::SigmoidLayer(const SigmoidConfig&) {}

void SigmoidLayer::Map(const float* src, int64_t n, float* dst) const {
  for (int64_t i = 0; i < n; ++i) dst[i] = 1 / (1 + std::exp(-src[i]));
}

void SigmoidLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                               float* diff_src) const {
  RT_KERNEL(SigmoidGradient)(dst, diff_dst, n, diff_src);
}

// Forward is the C library's function, value by value.
std::string SigmoidLayer::Implementation() const {
  return std::string("scalar / ") + KernelImplementation();
}

}  // namespace ringtail
