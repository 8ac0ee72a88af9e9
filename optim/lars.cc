#include "optim/lars.h"

#include <fmt/format.h>

#include <cmath>

#include "core/config/field_check.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

// The coefficients for one part of one parameter; names as in the header's formula.
struct Coefficients {
  float gradient;  // ratio * grad_scale
  float decay;     // ratio * wd
  float momentum;
  float rate;
};

void Update(const Coefficients& c, int64_t n, const float* __restrict grad,
            float* __restrict velocity, float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float v = c.momentum * velocity[i] + (c.gradient * grad[i] + c.decay * weight[i]);
    velocity[i] = v;
    weight[i] -= c.rate * v;
  }
}

}  // namespace

Status Lars::Validate(const LarsConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim.lars");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", config.momentum()));
  RT_RETURN_IF_ERROR(check.Positive("trust", config.trust()));
  return check.NotNegative("epsilon", config.epsilon());
}

Lars::Lars(const LarsConfig& config, Decay decay, ParameterArena* arena)
    : config_(config),
      decay_(std::move(decay)),
      arena_(arena),
      velocity_(arena->values().size_bytes()) {}

std::vector<double> Lars::Ratios(double grad_scale) const {
  const std::vector<NormSquares> squares = SumOverParameters(*arena_, [&](const ParameterPart& p) {
    if (arena_->parameters()[p.parameter].spec.kind == ParameterKind::kVector) return NormSquares();
    const int64_t n = p.end - p.begin;
    return NormSquares{.weight = SumOfSquares(arena_->values().subspan(p.begin, n)),
                       .update = SumOfSquares(arena_->grads().subspan(p.begin, n))};
  });
  std::vector<double> ratios;
  for (size_t p = 0; p < squares.size(); ++p) {
    const double weight = std::sqrt(squares[p].weight);
    const double gradient = grad_scale * std::sqrt(squares[p].update);
    const double bound = gradient + decay_.Of(p) * weight + config_.epsilon();
    const bool adapts = weight > 0 && gradient > 0;
    ratios.push_back(adapts ? config_.trust() * weight / bound : 1);
  }
  return ratios;
}

void Lars::Step(int64_t /*step*/, double learning_rate, double grad_scale) {
  const std::vector<double> ratios = Ratios(grad_scale);
  const float* grads = arena_->grads().data();
  float* weights = arena_->values().data();
  float* velocity = velocity_.floats().data();
  WalkParameters(*arena_, [&](const ParameterPart& part) {
    const double ratio = ratios[part.parameter];
    const Coefficients c{.gradient = static_cast<float>(ratio * grad_scale),
                         .decay = static_cast<float>(ratio * decay_.Of(part.parameter)),
                         .momentum = static_cast<float>(config_.momentum()),
                         .rate = static_cast<float>(decay_.Rate(part.parameter, learning_rate))};
    const int64_t b = part.begin;
    Update(c, part.end - b, grads + b, velocity + b, weights + b);
  });
}

std::vector<Optimizer::StateBlock> Lars::state() { return {{"momentum", velocity_.floats()}}; }

std::string Lars::Describe() const {
  return fmt::format("LARS momentum={} trust={}{}", config_.momentum(), config_.trust(),
                     decay_.Describe());
}

}  // namespace ringtail
