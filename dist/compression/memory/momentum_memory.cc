#include "dist/compression/memory/momentum_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

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
  RT_CHECK(options.momentum >= 0 && options.momentum < 1, "momentum fades");
}

double MomentumMemory::LocalNorm(double global_norm, int ranks) {
  return global_norm / std::sqrt(static_cast<double>(ranks));
}

void MomentumMemory::Add(std::span<const float> gradient, double max_norm) {
  RT_CHECK(gradient.size() == residual_.size(), "a gradient of the same parameter");
  float scale = 1;
  if (max_norm != kNoClipping) {
    const double norm = std::sqrt(SumOfSquares(gradient));
    if (norm > max_norm) scale = static_cast<float>(max_norm / norm);
  }
  (options_.nesterov ? AddNesterov : AddClassic)(options_.momentum, scale, gradient,
                                                 velocity_.data(), residual_.data());
}

void MomentumMemory::Sent(const DgcCodec& codec, const GradientShape& shape,
                          const CodecMoment& moment, std::span<const std::byte> payload) {
  const StatusOr<DgcCodec::Entries> entries = codec.Open(shape, moment, payload);
  RT_CHECK(entries.ok(), entries.status().ToString());
  const SparseLayout layout = codec.LayoutOf(shape, moment);
  static thread_local std::vector<float> values;
  ReadValues(layout, entries.value().count, entries.value().bytes, &values);
  for (int64_t i = 0; i < entries.value().count; ++i) {
    const int32_t place = PlaceOf(layout, i, entries.value().bytes);
    residual_[place] -= values[i];
    if (options_.masking) velocity_[place] = 0;
  }
}

void MomentumMemory::SentAll() { std::fill(residual_.begin(), residual_.end(), 0.0f); }

}  // namespace ringtail
