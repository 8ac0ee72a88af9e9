#include "layers/activations/relu.h"

#include <limits>

#include "layers/kernels/activation.h"

namespace ringtail {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

ReluLayer::ReluLayer(const ReluConfig&) {}

void ReluLayer::Map(const float* src, int64_t n, float* dst) const {
  RT_KERNEL(Clamp)(src, n, 0, kInfinity, dst);
}

void ReluLayer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                            float* diff_src) const {
  RT_KERNEL(ClampGradient)(dst, diff_dst, n, 0, kInfinity, diff_src);
}

}  // namespace ringtail
