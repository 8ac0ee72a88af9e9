#include "optim/sgd.h"

#include <fmt/format.h>

#include "core/config/field_check.h"
#include "optim/parameter_walk.h"

namespace ringtail {
namespace {

// The coefficients for one part of one parameter; names as in the header's formula.
struct Coefficients {
  float grad_scale;
  float decay;  // wd if coupled, else 0
  float keep;   // 1 - lr wd if decoupled, else 1
  float momentum;
  float rate;
};

void UpdatePlain(const Coefficients& c, int64_t n, const float* __restrict grad,
                 float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = c.grad_scale * grad[i] + c.decay * weight[i];
    weight[i] = c.keep * weight[i] - c.rate * g;
  }
}

template <bool kNesterov>
void UpdateMomentum(const Coefficients& c, int64_t n, const float* __restrict grad,
                    float* __restrict velocity, float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = c.grad_scale * grad[i] + c.decay * weight[i];
    const float v = c.momentum * velocity[i] + g;
    const float u = kNesterov ? g + c.momentum * v : v;
    velocity[i] = v;
    weight[i] = c.keep * weight[i] - c.rate * u;
  }
}

}  // namespace

Status Sgd::Validate(const SgdConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim.sgd");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", config.momentum()));
  if (config.nesterov() && config.momentum() == 0) {
    return check.Error("nesterov",
                       "nesterov needs momentum > 0; set momentum or leave nesterov out");
  }
  return OkStatus();
}

Sgd::Sgd(const SgdConfig& config, Decay decay, ParameterArena* arena)
    : config_(config), decay_(std::move(decay)), arena_(arena) {
  if (config.momentum() > 0) velocity_ = AlignedBuffer(arena->values().size_bytes());
}

void Sgd::Step(int64_t /*step*/, double learning_rate, double grad_scale) {
  const float* grads = arena_->grads().data();
  float* weights = arena_->values().data();
  float* velocity = velocity_.floats().data();
  WalkParameters(*arena_, [&](const ParameterPart& part) {
    const double decay = decay_.Of(part.parameter);
    const double rate = decay_.Rate(part.parameter, learning_rate);
    const bool decoupled = config_.decoupled_decay();
    const Coefficients c{.grad_scale = static_cast<float>(grad_scale),
                         .decay = static_cast<float>(decoupled ? 0 : decay),
                         .keep = static_cast<float>(decoupled ? 1 - rate * decay : 1),
                         .momentum = static_cast<float>(config_.momentum()),
                         .rate = static_cast<float>(rate)};
    const int64_t b = part.begin, n = part.end - part.begin;
    if (velocity == nullptr) {
      UpdatePlain(c, n, grads + b, weights + b);
    } else if (config_.nesterov()) {
      UpdateMomentum<true>(c, n, grads + b, velocity + b, weights + b);
    } else {
      UpdateMomentum<false>(c, n, grads + b, velocity + b, weights + b);
    }
  });
}

std::vector<Optimizer::StateBlock> Sgd::state() {
  if (config_.momentum() == 0) return {};
  return {{"momentum", velocity_.floats()}};
}

std::string Sgd::Describe() const {
  return fmt::format("SGD momentum={}{}{}{}", config_.momentum(),
                     config_.nesterov() ? " nesterov" : "",
                     config_.decoupled_decay() ? " decoupled" : "", decay_.Describe());
}

}  // namespace ringtail
