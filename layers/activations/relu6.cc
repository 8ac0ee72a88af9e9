#include "layers/activations/relu6.h"

#include "layers/kernels/activation.h"

namespace ringtail {
namespace {

constexpr float kHigh = 6;

}  // namespace

Relu6Layer::Relu6Layer(const Relu6Config&) {}

void Relu6Layer::Map(const float* src, int64_t n, float* dst) const {
  RT_KERNEL(Clamp)(src, n, 0, kHigh, dst);
}

void Relu6Layer::MapGradient(const float* dst, const float* diff_dst, int64_t n,
                             float* diff_src) const {
  RT_KERNEL(ClampGradient)(dst, diff_dst, n, 0, kHigh, diff_src);
}

}  // namespace ringtail
