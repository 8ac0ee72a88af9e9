#include "optim/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/config/field_check.h"
#include "core/parallel_for.h"
#include "core/sum_of_squares.h"
#include "optim/orthogonalize.h"

namespace ringtail {
namespace {

constexpr double kMostVectorRate = 10;
constexpr int64_t kFloatsInCache = 1 << 12;  // of each of three arrays

bool IsMatrix(const Parameter& p) { return p.spec.kind != ParameterKind::kVector; }

// Proportional to orthogonalize.h's operations; negligible for vectors.
double Work(const Parameter& p) {
  if (!IsMatrix(p)) return 0;
  const double rows = static_cast<double>(p.spec.shape[0]);
  const double cols = static_cast<double>(p.elements) / rows;
  return rows * cols * std::min(rows, cols);
}

// u of v as it was before the step.
void Nesterov(float grad_scale, float momentum, int64_t n, const float* __restrict grad,
              const float* __restrict velocity, float* __restrict update) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = grad_scale * grad[i];
    update[i] = g + momentum * (momentum * velocity[i] + g);
  }
}

// u, and the sum of its squares while it is in the first cache.
double NesterovAndSquares(float grad_scale, float momentum, int64_t n, const float* grad,
                          const float* velocity, float* update) {
  double squares = 0;
  for (int64_t begin = 0; begin < n; begin += kFloatsInCache) {
    const int64_t count = std::min(kFloatsInCache, n - begin);
    Nesterov(grad_scale, momentum, count, grad + begin, velocity + begin, update + begin);
    squares += SumOfSquares(std::span(update + begin, count));
  }
  return squares;
}

// The norm of rows * columns values of U(-a, a), a = 1 / sqrt(columns).
double NormOfUniformStart(const Parameter& p) {
  return std::sqrt(static_cast<double>(p.spec.shape[0]) / 3);
}

// The coefficients for one parameter; names as in the header's formula.
struct Coefficients {
  float grad_scale, momentum;
  float keep;  // 1 - lr wd
  float rate;  // lr, and for weights trust ||w|| / ||O||
};

// v and w.
void Move(const Coefficients& c, int64_t n, const float* __restrict grad,
          const float* __restrict direction, float* __restrict velocity, float* __restrict weight) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    velocity[i] = c.momentum * velocity[i] + c.grad_scale * grad[i];
    weight[i] = c.keep * weight[i] - c.rate * direction[i];
  }
}

// As many elements of `scratch`, which only grows.
std::span<float> Part(std::vector<float>* scratch, int64_t elements) {
  scratch->resize(std::max<size_t>(scratch->size(), elements));
  return std::span(*scratch).first(elements);
}

}  // namespace

Status Muon::Validate(const MuonConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim.muon");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", config.momentum()));
  RT_RETURN_IF_ERROR(check.Positive("trust", config.trust()));
  return check.Between("vector_rate", config.vector_rate(), 0, kMostVectorRate);
}

bool Muon::TakesBf16Products(const MuonConfig& config) {
  return config.matrices() == MuonConfig::FASTEST;
}

Muon::Muon(const MuonConfig& config, Decay decay, ParameterArena* arena, bool bf16_products)
    : config_(config),
      numbers_(bf16_products && TakesBf16Products(config) ? Orthogonalization::Numbers::kBfloat16
                                                          : Orthogonalization::Numbers::kFloat),
      decay_(std::move(decay)),
      arena_(arena),
      velocity_(arena->values().size_bytes()) {
  const auto parameters = arena->parameters();
  for (const Parameter& p : parameters) work_.push_back(Work(p));
  most_work_first_.resize(parameters.size());
  std::iota(most_work_first_.begin(), most_work_first_.end(), size_t{0});
  std::ranges::stable_sort(most_work_first_, std::greater<>(), [&](size_t p) { return work_[p]; });
}

std::vector<double> Muon::PreparableWork() const { return work_; }

// Each of those that are not shared is at most half of a thread's part of all work, so that threads
// end at about the same time.
size_t Muon::NumShared(std::span<const size_t> parameters) const {
  double all = 0;
  for (const size_t p : parameters) all += work_[p];
  const double most = all / (2.0 * NumComputeThreads());
  return std::ranges::find_if(parameters, [&](size_t p) { return work_[p] <= most; }) -
         parameters.begin();
}

std::span<const float> Muon::StartDirection(size_t parameter, double grad_scale, const Place& place,
                                            size_t index) {
  const Parameter& p = arena_->parameters()[parameter];
  Scratch& scratch = scratch_[index];
  const std::span<float> update = Part(&scratch.update, p.elements);
  const double squares = NesterovAndSquares(
      static_cast<float>(grad_scale), static_cast<float>(config_.momentum()), p.elements,
      p.grad().data(), velocity_.floats().data() + p.offset, update.data());
  if (!IsMatrix(p)) return update;
  std::span<float> direction = place(parameter);
  if (direction.empty()) direction = Part(&scratch.direction, p.elements);
  const int64_t rows = p.spec.shape[0];
  orthogonalizations_[index].Start(numbers_, rows, p.elements / rows, squares, update.data(),
                                   direction.data());
  return direction;
}

void Muon::ComputeDirections(std::span<const size_t> parameters, double grad_scale,
                             const Place& place, const Use& use) {
  const auto threads = static_cast<size_t>(NumComputeThreads());
  scratch_.resize(threads);
  orthogonalizations_.resize(threads);
  const size_t shared = NumShared(parameters);
  for (size_t first = 0; first < shared; first += threads) {
    const auto group = parameters.subspan(first, std::min(threads, shared - first));
    std::vector<std::span<const float>> directions(group.size());
    ParallelForEach(std::ssize(group), [&](int64_t i, int64_t /*thread*/) {
      directions[i] = StartDirection(group[i], grad_scale, place, i);
    });
    RunTogether(std::span(orthogonalizations_).first(group.size()));
    ParallelForEach(std::ssize(group),
                    [&](int64_t i, int64_t /*thread*/) { use(group[i], directions[i]); });
  }
  const auto single = parameters.subspan(shared);
  ParallelForEach(std::ssize(single), [&](int64_t i, int64_t thread) {
    const size_t parameter = single[i];
    const std::span<const float> direction = StartDirection(parameter, grad_scale, place, thread);
    if (IsMatrix(arena_->parameters()[parameter])) orthogonalizations_[thread].RunAll();
    use(parameter, direction);
  });
}

bool Muon::StepsFromStart(const Parameter& p) const {
  return config_.head_norm() == MuonConfig::START && p.spec.depth == 0 &&
         p.spec.kind == ParameterKind::kLinearWeight;
}

void Muon::MoveParameter(size_t parameter, double learning_rate, double grad_scale,
                         std::span<const float> direction) {
  const Parameter& p = arena_->parameters()[parameter];
  const std::span<float> weight = p.value();
  const double rate =
      decay_.Rate(parameter, learning_rate) * (IsMatrix(p) ? 1 : config_.vector_rate());
  Coefficients c{.grad_scale = static_cast<float>(grad_scale),
                 .momentum = static_cast<float>(config_.momentum()),
                 .keep = static_cast<float>(1 - rate * decay_.Of(parameter)),
                 .rate = static_cast<float>(rate)};
  if (IsMatrix(p)) {
    const double weight_norm =
        StepsFromStart(p) ? NormOfUniformStart(p) : std::sqrt(SumOfSquares(weight));
    const double direction_norm = std::sqrt(SumOfSquares(direction));
    if (weight_norm > 0 && direction_norm > 0) {
      c.rate = static_cast<float>(rate * config_.trust() * weight_norm / direction_norm);
    }
  }
  Move(c, p.elements, p.grad().data(), direction.data(), velocity_.floats().data() + p.offset,
       weight.data());
}

void Muon::Prepare(std::span<const size_t> parameters, PreparedStep* prepared) {
  std::vector<size_t> matrices;
  for (const size_t p : parameters) {
    if (work_[p] > 0) matrices.push_back(p);
  }
  std::ranges::stable_sort(matrices, std::greater<>(), [&](size_t p) { return work_[p]; });
  std::vector<std::span<float>> places(work_.size());
  for (const size_t p : matrices) places[p] = prepared->Add(*arena_, p);
  ComputeDirections(
      matrices, prepared->grad_scale(), [&](size_t p) { return places[p]; }, [](auto&&...) {});
}

void Muon::Step(int64_t step, double learning_rate, double grad_scale) {
  PreparedStep nothing;
  nothing.Begin(grad_scale);
  StepPrepared(step, learning_rate, &nothing);
}

void Muon::StepPrepared(int64_t /*step*/, double learning_rate, PreparedStep* prepared) {
  const double grad_scale = prepared->grad_scale();
  const auto move = [&](size_t parameter, std::span<const float> direction) {
    MoveParameter(parameter, learning_rate, grad_scale, direction);
  };
  std::vector<size_t> known, rest;
  for (const size_t p : most_work_first_) (prepared->Of(p).empty() ? rest : known).push_back(p);
  ComputeDirections(
      rest, grad_scale, [](size_t) { return std::span<float>(); }, move);
  ParallelForEach(std::ssize(known),
                  [&](int64_t i, int64_t /*thread*/) { move(known[i], prepared->Of(known[i])); });
  prepared->Begin(grad_scale);
}

std::vector<Optimizer::StateBlock> Muon::state() { return {{"momentum", velocity_.floats()}}; }

std::string Muon::Describe() const {
  std::string text = fmt::format("Muon momentum={} trust={}", config_.momentum(), config_.trust());
  if (config_.head_norm() == MuonConfig::START) text += " head_norm=START";
  if (numbers_ == Orthogonalization::Numbers::kBfloat16) text += " matrices=bf16";
  if (config_.vector_rate() != 1) text += fmt::format(" vector_rate={}", config_.vector_rate());
  return text + decay_.Describe();
}

}  // namespace ringtail
