#include "optim/adam.h"

#include <fmt/format.h>

#include <cmath>

#include "core/config/field_check.h"
#include "optim/bias_correction.h"
#include "optim/parameter_walk.h"

namespace ringtail {
namespace {

// The coefficients for one part of one parameter; names as in the header's formula.
struct Coefficients {
  float grad_scale;
  float decay;  // wd if coupled, else 0
  float keep;   // 1 - lr wd if decoupled, else 1
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float rate;             // lr / (1 - b1^t)
  float root_correction;  // 1 / sqrt(1 - b2^t)
  float epsilon;
};

void Update(const Coefficients& c, int64_t n, const float* __restrict grad, float* __restrict first,
            float* __restrict second, float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = c.grad_scale * grad[i] + c.decay * weight[i];
    const float m = c.beta1 * first[i] + c.one_minus_beta1 * g;
    const float v = c.beta2 * second[i] + c.one_minus_beta2 * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] = c.keep * weight[i] - c.rate * m / (std::sqrt(v) * c.root_correction + c.epsilon);
  }
}

}  // namespace

Status Adam::Validate(const AdamConfig& config, const std::string& field,
                      const ConfigSource* source) {
  const FieldCheck check(source, "optim." + field);
  RT_RETURN_IF_ERROR(check.FractionBelowOne("beta1", config.beta1()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("beta2", config.beta2()));
  return check.Positive("epsilon", config.epsilon());
}

Adam::Adam(const AdamConfig& config, DecayKind kind, Decay decay, ParameterArena* arena)
    : config_(config),
      kind_(kind),
      decay_(std::move(decay)),
      arena_(arena),
      first_moment_(arena->values().size_bytes()),
      second_moment_(arena->values().size_bytes()) {}

void Adam::Step(int64_t step, double learning_rate, double grad_scale) {
  const double beta1 = config_.beta1(), beta2 = config_.beta2();
  const Coefficients common{.grad_scale = static_cast<float>(grad_scale),
                            .decay = 0,
                            .keep = 1,
                            .beta1 = static_cast<float>(beta1),
                            .one_minus_beta1 = static_cast<float>(1 - beta1),
                            .beta2 = static_cast<float>(beta2),
                            .one_minus_beta2 = static_cast<float>(1 - beta2),
                            .rate = 0,
                            .root_correction = 1,
                            .epsilon = static_cast<float>(config_.epsilon())};
  const BiasCorrections corrections(beta1, beta2, step, first_steps());
  const float* grads = arena_->grads().data();
  float* weights = arena_->values().data();
  float* first = first_moment_.floats().data();
  float* second = second_moment_.floats().data();
  WalkParameters(*arena_, [&](const ParameterPart& part) {
    const double decay = decay_.Of(part.parameter);
    const double rate = decay_.Rate(part.parameter, learning_rate);
    Coefficients c = common;
    const BiasCorrection& correction = corrections.Of(part.parameter);
    c.rate = static_cast<float>(rate / correction.first);
    c.root_correction = static_cast<float>(1 / correction.root_second);
    if (kind_ == DecayKind::kDecoupled) {
      c.keep = static_cast<float>(1 - rate * decay);
    } else {
      c.decay = static_cast<float>(decay);
    }
    const int64_t b = part.begin;
    Update(c, part.end - b, grads + b, first + b, second + b, weights + b);
  });
}

std::vector<Optimizer::StateBlock> Adam::state() {
  return {{"first_moment", first_moment_.floats()}, {"second_moment", second_moment_.floats()}};
}

std::string Adam::Describe() const {
  return fmt::format("{} beta1={} beta2={} epsilon={}{}",
                     kind_ == DecayKind::kDecoupled ? "AdamW" : "Adam", config_.beta1(),
                     config_.beta2(), config_.epsilon(), decay_.Describe());
}

}  // namespace ringtail
