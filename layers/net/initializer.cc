#include "layers/net/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/check.h"
#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/net.pb.h"

namespace ringtail {
namespace {

// What every kind of initializer is reduced to.
struct Distribution {
  enum class Shape { kConstant, kNormal, kUniform } shape;
  double scale;  // the constant, the standard deviation, or half the width
};

constexpr int64_t kDrawsPerBlock = 4;     // words of one Philox block
constexpr int64_t kBlocksPerTask = 4096;  // about 100 us of work

using Bits = std::array<uint32_t, kDrawsPerBlock>;

using Draws = std::array<double, kDrawsPerBlock>;

Draws StandardNormals(const Bits& bits) {
  const NormalPair a = BoxMuller(bits[0], bits[1]), b = BoxMuller(bits[2], bits[3]);
  return {a.first, a.second, b.first, b.second};
}

// In [-1, 1).
Draws SymmetricUniforms(const Bits& bits) {
  Draws uniforms{};
  for (int64_t i = 0; i < kDrawsPerBlock; ++i) uniforms[i] = bits[i] * 0x1p-31 - 1;
  return uniforms;
}

// Values 4b .. 4b + 3 are made from block b of the key's sequence; values[0] is value `from`.
void FillRandom(const Distribution& distribution, RngKey key, int64_t from,
                std::span<float> values) {
  const int64_t to = from + static_cast<int64_t>(values.size());
  const int64_t before = from / kDrawsPerBlock;
  const int64_t blocks = CeilDivide(to, kDrawsPerBlock) - before;
  ParallelFor(blocks, kBlocksPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t block = before + begin; block < before + end; ++block) {
      const Bits bits = Philox4x32(
          {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, key.bits());
      const auto draws = distribution.shape == Distribution::Shape::kNormal
                             ? StandardNormals(bits)
                             : SymmetricUniforms(bits);
      const int64_t first = std::max(from, block * kDrawsPerBlock);
      const int64_t last = std::min(to, (block + 1) * kDrawsPerBlock);
      for (int64_t i = first; i < last; ++i) {
        values[i - from] = static_cast<float>(distribution.scale * draws[i % kDrawsPerBlock]);
      }
    }
  });
}

Distribution Normal(double variance) { return {Distribution::Shape::kNormal, std::sqrt(variance)}; }
Distribution Uniform(double variance) {
  return {Distribution::Shape::kUniform, std::sqrt(3 * variance)};
}
Distribution Constant(double value) { return {Distribution::Shape::kConstant, value}; }

double HeVariance(const HeInit& he, const ParameterRequest& request) {
  const int64_t fan = he.fan() == HeInit::FAN_OUT ? request.fan_out : request.fan_in;
  return static_cast<double>(he.gain()) / static_cast<double>(fan);
}

double XavierVariance(const ParameterRequest& request) {
  return 2.0 / static_cast<double>(request.fan_in + request.fan_out);
}

Distribution FallbackDistribution(const ParameterRequest& request) {
  switch (request.fallback_init) {
    case ParameterRequest::Fallback::kHeNormal:
      return Normal(HeVariance(HeInit::default_instance(), request));
    case ParameterRequest::Fallback::kOne:
      return Constant(1);
    case ParameterRequest::Fallback::kZero:
      break;
  }
  return Constant(0);
}

Distribution DistributionOf(const ParameterRequest& request) {
  if (request.init == nullptr) return FallbackDistribution(request);
  const InitializerConfig& init = *request.init;
  switch (init.kind_case()) {
    case InitializerConfig::kConstant:
      return Constant(init.constant().value());
    case InitializerConfig::kHeNormal:
      return Normal(HeVariance(init.he_normal(), request));
    case InitializerConfig::kHeUniform:
      return Uniform(HeVariance(init.he_uniform(), request));
    case InitializerConfig::kXavierNormal:
      return Normal(XavierVariance(request));
    case InitializerConfig::kXavierUniform:
      return Uniform(XavierVariance(request));
    case InitializerConfig::kNormal:
      return {Distribution::Shape::kNormal, init.normal().std()};
    case InitializerConfig::kFanInUniform:
      return {Distribution::Shape::kUniform, 1 / std::sqrt(static_cast<double>(request.fan_in))};
    case InitializerConfig::KIND_NOT_SET:
      break;
  }
  RT_CHECK(false, "an initializer without a kind must not pass ValidateInitializer");
}

}  // namespace

Status ValidateInitializer(const InitializerConfig& config, const FieldCheck& fields) {
  switch (config.kind_case()) {
    case InitializerConfig::KIND_NOT_SET:
      return fields.Error("", "initializer: no kind is given; write for example `he_normal {}`");
    case InitializerConfig::kConstant:
      if (std::isfinite(config.constant().value())) return OkStatus();
      return fields.Within("constant").Error("value", "value must be a finite number");
    case InitializerConfig::kNormal:
      return fields.Within("normal").NotNegative("std", config.normal().std());
    case InitializerConfig::kHeNormal:
      return fields.Within("he_normal").Positive("gain", config.he_normal().gain());
    case InitializerConfig::kHeUniform:
      return fields.Within("he_uniform").Positive("gain", config.he_uniform().gain());
    case InitializerConfig::kXavierNormal:
    case InitializerConfig::kXavierUniform:
    case InitializerConfig::kFanInUniform:
      break;
  }
  return OkStatus();
}

Status ValidateInitializer(const ParameterRequest& request, const FieldCheck& fields) {
  if (request.init == nullptr) return OkStatus();
  RT_RETURN_IF_ERROR(ValidateInitializer(*request.init, fields.Within(request.init_field)));
  if (!std::isfinite(DistributionOf(request).scale)) {  // divided by a fan of 0
    return fields.Error(
        request.init_field,
        fmt::format("initializer: {} has no fan to scale by; use `constant` or `normal`",
                    request.spec.name));
  }
  return OkStatus();
}

void FillInitial(const ParameterRequest& request, RngKey key, std::span<float> values) {
  const Distribution distribution = DistributionOf(request);
  RT_CHECK(std::isfinite(distribution.scale), "an initializer that scales by a fan needs one");
  if (distribution.shape == Distribution::Shape::kConstant) {
    std::ranges::fill(values, static_cast<float>(distribution.scale));
  } else {
    const ParameterSpec& spec = request.spec;
    const int64_t row = spec.is_sharded() ? NumElements(spec.shape) / spec.shape[0] : 0;
    FillRandom(distribution, key, spec.shard.first * row, values);
  }
}

}  // namespace ringtail
