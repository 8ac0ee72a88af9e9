#include "layers/activations/activations.h"

#include <cmath>

#include "core/kernel_isa.h"
#include "layers/kernels/activation.h"

namespace ringtail {
namespace {

// The implementation of layers whose forward is a loop over a function of the C library.
std::string ScalarForward() { return std::string("scalar / ") + KernelImplementation(); }

}  // namespace

ClampLayer::ClampLayer(Activation activation)
    : low_(LowerBound(activation)), high_(UpperBound(activation)) {}

void ClampLayer::Map(const float* src, int64_t n, float* dst) const {
  RT_KERNEL(Clamp<float>, src, n, low_, high_, dst);
}

void ClampLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                             float* diff_src) const {
  RT_KERNEL(ClampGradient<float>, dst, diff_dst, n, low_, high_, diff_src);
}

Status LeakyReluLayer::CheckConfig() { return fields().FractionBelowOne("slope", config_.slope()); }

void LeakyReluLayer::Map(const float* src, int64_t n, float* dst) const {
  RT_KERNEL(LeakyRelu, src, n, config_.slope(), dst);
}

void LeakyReluLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                                 float* diff_src) const {
  RT_KERNEL(LeakyReluGradient, dst, diff_dst, n, config_.slope(), diff_src);
}

void SigmoidLayer::Map(const float* src, int64_t n, float* dst) const {
  for (int64_t i = 0; i < n; ++i) dst[i] = 1 / (1 + std::exp(-src[i]));
}

void SigmoidLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                               float* diff_src) const {
  RT_KERNEL(SigmoidGradient, dst, diff_dst, n, diff_src);
}

std::string SigmoidLayer::Implementation() const { return ScalarForward(); }

void TanhLayer::Map(const float* src, int64_t n, float* dst) const {
  for (int64_t i = 0; i < n; ++i) dst[i] = std::tanh(src[i]);
}

void TanhLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                            float* diff_src) const {
  RT_KERNEL(TanhGradient, dst, diff_dst, n, diff_src);
}

std::string TanhLayer::Implementation() const { return ScalarForward(); }

}  // namespace ringtail
