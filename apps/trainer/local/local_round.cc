#include "apps/trainer/local/local_round.h"

#include <algorithm>
#include <utility>

#include "core/parallel_for.h"
#include "core/parameter_specs.h"
#include "optim/gradient_norm.h"

namespace ringtail {
namespace {

constexpr int64_t kMinFloatsPerThread = 1 << 16;

template <typename Fn>
void ForEachElement(std::span<const float> block, const Fn& fn) {
  ParallelFor(std::ssize(block), kMinFloatsPerThread, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}

// to = from
void Copy(std::span<const float> from, std::span<float> to) {
  float* const t = to.data();
  const float* const f = from.data();
  ForEachElement(from, [=](int64_t i) { t[i] = f[i]; });
}

// own += common - taken
void Follow(std::span<const float> common, std::span<const float> taken, std::span<float> own) {
  float* const o = own.data();
  const float *const c = common.data(), *const t = taken.data();
  ForEachElement(common, [=](int64_t i) { o[i] += c[i] - t[i]; });
}

double SquaredNorm(const ParameterArena& arena, double scale) {
  const double norm = GradientNorm(arena, scale);
  return norm * norm;
}

}  // namespace

StatusOr<std::unique_ptr<LocalRound>> LocalRound::Create(ParameterArena* model,
                                                         const OuterRule& rule, bool overlapped) {
  RT_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterArena> common,
      ParameterArena::Create(SpecsOf(model->parameters()), SpecsOf(model->buffers())));
  return std::unique_ptr<LocalRound>(new LocalRound(model, std::move(common), rule, overlapped));
}

LocalRound::LocalRound(ParameterArena* model, std::unique_ptr<ParameterArena> common,
                       const OuterRule& rule, bool overlapped)
    : model_(model),
      overlapped_(overlapped),
      common_(std::move(common)),
      outer_(rule, common_.get()),
      statistics_(model->buffer_values().size_bytes()) {
  Copy(model_->values(), common_weights());
  Copy(model_->buffer_values(), common_statistics());
  if (!overlapped_) return;
  for (AlignedBuffer* block : {&taken_weights_, &hidden_weights_}) {
    *block = AlignedBuffer(model->values().size_bytes());
  }
  for (AlignedBuffer* block : {&taken_statistics_, &hidden_statistics_}) {
    *block = AlignedBuffer(model->buffer_values().size_bytes());
  }
}

double LocalRound::Take(double weight) {
  const auto c = static_cast<float>(weight);
  const float *const common = common_weights().data(), *const own = model_->values().data();
  float* const difference = common_->grads().data();
  ForEachElement(common_weights(), [=](int64_t i) { difference[i] = c * (common[i] - own[i]); });
  float* const offered = statistics().data();
  const float* const statistics_now = model_->buffer_values().data();
  ForEachElement(statistics(), [=](int64_t i) { offered[i] = c * statistics_now[i]; });
  if (overlapped_) {
    Copy(model_->values(), taken_weights_.floats());
    Copy(model_->buffer_values(), taken_statistics_.floats());
  }
  return weight > 0 ? SquaredNorm(*common_, 1 / weight) : 0;
}

void LocalRound::TakeNothing() {
  std::ranges::fill(common_->grads(), 0.0f);
  std::ranges::fill(statistics(), 0.0f);
  Forget();
  if (!overlapped_) return;
  Copy(common_weights(), taken_weights_.floats());
  Copy(common_statistics(), taken_statistics_.floats());
}

double LocalRound::Divisor(double weights) const {
  if (coded_ranks_ > 0) return coded_ranks_;
  return weights > 0 ? weights : 1;  // of a sum of nothing
}

double LocalRound::Merge(int64_t round, double weights, double inner_rate) {
  const double scale = 1 / Divisor(weights);
  const double squares = SquaredNorm(*common_, scale);
  outer_.Step(round, scale, inner_rate);
  if (weights > 0) {
    const auto mean = static_cast<float>(1 / weights);
    const float* const sum = statistics().data();
    float* const common = common_statistics().data();
    ForEachElement(statistics(), [=](int64_t i) { common[i] = mean * sum[i]; });
  }
  if (overlapped_) {
    Follow(common_weights(), taken_weights_.floats(), model_->values());
    Follow(common_statistics(), taken_statistics_.floats(), model_->buffer_values());
  } else {
    Forget();
  }
  return squares;
}

void LocalRound::Swap() {
  if (!overlapped_) return;
  if (!swapped_) {
    Copy(common_weights(), hidden_weights_.floats());
    Copy(common_statistics(), hidden_statistics_.floats());
  }
  model_->SwapValues(&hidden_weights_, &hidden_statistics_);
  swapped_ = !swapped_;
}

void LocalRound::Forget() {
  Copy(common_weights(), model_->values());
  Copy(common_statistics(), model_->buffer_values());
}

}  // namespace ringtail
