#include "dist/compression/memory/momentum_memory.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

void AddClassic(float m, float scale, std::span<const float> gradient, float* __restrict u,
                float* __restrict v) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    u[i] = m * u[i] + scale * gradient[i];
    v[i] += u[i];
  }
}

void AddNesterov(float m, float scale, std::span<const float> gradient, float* __restrict u,
                 float* __restrict v) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float g = scale * gradient[i];
    u[i] = m * (u[i] + g);
    v[i] += u[i] + g;
  }
}

}  // namespace

MomentumMemory::MomentumMemory(const MomentumMemoryOptions& options, std::span<float> velocity,
                               std::span<float> residual)
    : options_(options), velocity_(velocity), residual_(residual) {
  RT_CHECK(velocity.size() == residual.size(), "one velocity for each element");
  RT_CHECK(options.momentum >= 0 && options.momentum < 1, "momentum is at least 0 and below 1");
}

double MomentumMemory::LocalNorm(double global_norm, int ranks) {
  return global_norm / std::sqrt(static_cast<double>(ranks));
}

void MomentumMemory::Encode(const Codec& codec, const EncodeContext& context,
                            std::span<const float> gradient, int64_t offset,
                            std::span<std::byte> payload) {
  RT_CHECK(offset == 0, "momentum belongs to whole gradients");
  Add(gradient);
  codec.Encode(context, residual_, payload);
  codec.ForEachSent(context, payload, [this](int64_t place, float value) {
    residual_[place] -= value;
    if (options_.masking) velocity_[place] = 0;
  });
}

void MomentumMemory::Add(std::span<const float> gradient) {
  RT_CHECK(gradient.size() == residual_.size(), "a residual has the elements of its gradient");
  float scale = 1;
  if (options_.max_norm < std::numeric_limits<double>::infinity()) {
    const double norm = std::sqrt(SumOfSquares(gradient));
    if (norm > options_.max_norm) scale = static_cast<float>(options_.max_norm / norm);
  }
  (options_.nesterov ? AddNesterov : AddClassic)(options_.momentum, scale, gradient,
                                                 velocity_.data(), residual_.data());
}

void MomentumMemory::SentAll() { std::ranges::fill(residual_, 0.0F); }

}  // namespace ringtail
