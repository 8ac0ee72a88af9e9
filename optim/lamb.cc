#include "optim/lamb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/config/field_check.h"
#include "core/sum_of_squares.h"
#include "optim/bias_correction.h"

namespace ringtail {
namespace {

// The coefficients for one part of one parameter; names as in the header's formula.
struct Coefficients {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float epsilon;
  float correction = 1;       // 1 / (1 - b1^t)
  float root_correction = 1;  // 1 / sqrt(1 - b2^t)
  float decay = 0;            // wd
};

// What all parameters have in common.
Coefficients CoefficientsOf(const LambConfig& config, double grad_scale) {
  const double beta1 = config.beta1(), beta2 = config.beta2();
  return {.grad_scale = static_cast<float>(grad_scale),
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .epsilon = static_cast<float>(config.epsilon())};
}

void UpdateMoments(const Coefficients& c, int64_t n, const float* __restrict grad,
                   float* __restrict first, float* __restrict second) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = c.grad_scale * grad[i];
    first[i] = c.beta1 * first[i] + c.one_minus_beta1 * g;
    second[i] = c.beta2 * second[i] + c.one_minus_beta2 * g * g;
  }
}

inline float Direction(const Coefficients& c, float first, float second, float weight) {
  return c.correction * first / (std::sqrt(second) * c.root_correction + c.epsilon) +
         c.decay * weight;
}

// ||u||^2, in stretches that stay in the cache.
double DirectionSquares(const Coefficients& c, int64_t n, const float* __restrict first,
                        const float* __restrict second, const float* __restrict weight) {
  constexpr int64_t kStretch = 1024;
  std::array<float, kStretch> u;
  double sum = 0;
  for (int64_t at = 0; at < n; at += kStretch) {
    const int64_t count = std::min(kStretch, n - at);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      u[i] = Direction(c, first[at + i], second[at + i], weight[at + i]);
    }
    sum += SumOfSquares(std::span(u).first(count));
  }
  return sum;
}

void UpdateWeights(const Coefficients& c, float rate, int64_t n, const float* __restrict first,
                   const float* __restrict second, float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    weight[i] -= rate * Direction(c, first[i], second[i], weight[i]);
  }
}

}  // namespace

Status Lamb::Validate(const LambConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim.lamb");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("beta1", config.beta1()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("beta2", config.beta2()));
  RT_RETURN_IF_ERROR(check.Positive("epsilon", config.epsilon()));
  return check.NotNegative("max_weight_norm", config.max_weight_norm());
}

Lamb::Lamb(const LambConfig& config, Decay decay, ParameterArena* arena)
    : config_(config),
      decay_(std::move(decay)),
      arena_(arena),
      first_moment_(arena->values().size_bytes()),
      second_moment_(arena->values().size_bytes()) {}

double Lamb::Ratio(const NormSquares& squares) const {
  if (squares.weight == 0 || squares.update == 0) return 1;
  const double norm = std::sqrt(squares.weight), most = config_.max_weight_norm();
  return (most > 0 ? std::min(norm, most) : norm) / std::sqrt(squares.update);
}

void Lamb::Step(int64_t step, double learning_rate, double grad_scale) {
  const Coefficients common = CoefficientsOf(config_, grad_scale);
  const BiasCorrections corrections(config_.beta1(), config_.beta2(), step, first_steps());
  const auto coefficients_of = [&](size_t parameter) {
    Coefficients c = common;
    c.correction = static_cast<float>(1 / corrections.Of(parameter).first);
    c.root_correction = static_cast<float>(1 / corrections.Of(parameter).root_second);
    c.decay = static_cast<float>(decay_.Of(parameter));
    return c;
  };
  const float* grads = arena_->grads().data();
  float* weights = arena_->values().data();
  float* first = first_moment_.floats().data();
  float* second = second_moment_.floats().data();
  const auto squares = SumOverParameters(*arena_, [&](const ParameterPart& part) {
    const Coefficients c = coefficients_of(part.parameter);
    const int64_t b = part.begin, n = part.end - b;
    UpdateMoments(c, n, grads + b, first + b, second + b);
    const bool adapts = arena_->parameters()[part.parameter].spec.kind != ParameterKind::kVector;
    if (!adapts) return NormSquares();
    return NormSquares{.weight = SumOfSquares({weights + b, weights + b + n}),
                       .update = DirectionSquares(c, n, first + b, second + b, weights + b)};
  });
  WalkParameters(*arena_, [&](const ParameterPart& part) {
    const double rate = decay_.Rate(part.parameter, learning_rate) * Ratio(squares[part.parameter]);
    const int64_t b = part.begin;
    UpdateWeights(coefficients_of(part.parameter), static_cast<float>(rate), part.end - b,
                  first + b, second + b, weights + b);
  });
}

std::vector<Optimizer::StateBlock> Lamb::state() {
  return {{"first_moment", first_moment_.floats()}, {"second_moment", second_moment_.floats()}};
}

std::string Lamb::Describe() const {
  return fmt::format("LAMB beta1={} beta2={} epsilon={}{}", config_.beta1(), config_.beta2(),
                     config_.epsilon(), decay_.Describe());
}

}  // namespace ringtail
