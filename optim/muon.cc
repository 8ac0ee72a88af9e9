#include "optim/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/config/field_check.h"
#include "core/parallel_for.h"
#include "core/sum_of_squares.h"
#include "optim/orthogonalize.h"

namespace ringtail {
namespace {

bool IsMatrix(const Parameter& p) { return p.spec.kind != ParameterKind::kVector; }

// Proportional to orthogonalize.h's operations; negligible for vectors.
double Work(const Parameter& p) {
  if (!IsMatrix(p)) return 0;
  const double rows = static_cast<double>(p.spec.shape[0]);
  const double cols = static_cast<double>(p.elements) / rows;
  return rows * cols * std::min(rows, cols);
}

// The coefficients for one parameter; names as in the header's formula.
struct Coefficients {
  float grad_scale, momentum;
  float keep;  // 1 - lr wd
  float rate;  // lr, and for weights trust ||w|| / ||O||
};

// v and u in one pass.
void Nesterov(const Coefficients& c, int64_t n, const float* __restrict grad,
              float* __restrict velocity, float* __restrict update) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = c.grad_scale * grad[i];
    const float v = c.momentum * velocity[i] + g;
    velocity[i] = v;
    update[i] = g + c.momentum * v;
  }
}

void Move(const Coefficients& c, int64_t n, const float* __restrict update,
          float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) weight[i] = c.keep * weight[i] - c.rate * update[i];
}

}  // namespace

Status Muon::Validate(const MuonConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim.muon");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", config.momentum()));
  return check.Positive("trust", config.trust());
}

Muon::Muon(const MuonConfig& config, Decay decay, ParameterArena* arena)
    : config_(config),
      decay_(std::move(decay)),
      arena_(arena),
      velocity_(arena->values().size_bytes()) {
  const auto parameters = arena->parameters();
  most_work_first_.resize(parameters.size());
  std::iota(most_work_first_.begin(), most_work_first_.end(), size_t{0});
  std::ranges::stable_sort(most_work_first_, std::greater<>(),
                           [&](size_t p) { return Work(parameters[p]); });
}

void Muon::UpdateParameter(size_t parameter, double learning_rate, double grad_scale,
                           Scratch* scratch) {
  const Parameter& p = arena_->parameters()[parameter];
  const std::span<float> weight = p.value();
  scratch->update.resize(std::max<size_t>(scratch->update.size(), p.elements));
  const std::span<float> update = std::span(scratch->update).first(p.elements);
  Coefficients c{.grad_scale = static_cast<float>(grad_scale),
                 .momentum = static_cast<float>(config_.momentum()),
                 .keep = static_cast<float>(1 - learning_rate * decay_.Of(parameter)),
                 .rate = static_cast<float>(learning_rate)};
  Nesterov(c, p.elements, p.grad().data(), velocity_.floats().data() + p.offset, update.data());
  if (IsMatrix(p)) {
    const int64_t rows = p.spec.shape[0];
    Orthogonalize(rows, p.elements / rows, update.data(), &scratch->products);
    const double weight_norm = std::sqrt(SumOfSquares(weight));
    const double update_norm = std::sqrt(SumOfSquares(update));
    if (weight_norm > 0 && update_norm > 0) {
      c.rate = static_cast<float>(learning_rate * config_.trust() * weight_norm / update_norm);
    }
  }
  Move(c, p.elements, update.data(), weight.data());
}

void Muon::Step(int64_t /*step*/, double learning_rate, double grad_scale) {
  const int threads = NumComputeThreads();
  scratch_.resize(threads);
  std::atomic<size_t> next =
      0;  // each free thread takes the next parameter; parameters are independent
  ParallelFor(threads, 1, [&](int64_t thread, int64_t) {
    for (size_t i = next++; i < most_work_first_.size(); i = next++) {
      UpdateParameter(most_work_first_[i], learning_rate, grad_scale, &scratch_[thread]);
    }
  });
}

std::vector<Optimizer::StateBlock> Muon::state() { return {{"momentum", velocity_.floats()}}; }

std::string Muon::Describe() const {
  return fmt::format("Muon momentum={} trust={}{}", config_.momentum(), config_.trust(),
                     decay_.Describe());
}

}  // namespace ringtail
