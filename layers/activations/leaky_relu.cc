#include "layers/activations/leaky_relu.h"

#include "layers/kernels/activation.h"

namespace ringtail {

LeakyReluLayer::LeakyReluLayer(const LeakyReluConfig& config) : config_(config) {}

Status LeakyReluLayer::CheckConfig() { return fields().FractionBelowOne("slope", config_.slope()); }

void LeakyReluLayer::Map(const float* src, int64_t n, float* dst) const {
  RT_KERNEL(LeakyRelu)(src, n, config_.slope(), dst);
}

void LeakyReluLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                                 float* diff_src) const {
  RT_KERNEL(LeakyReluGradient)(dst, diff_dst, n, config_.slope(), diff_src);
}

}  // namespace ringtail
