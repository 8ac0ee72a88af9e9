#include "dist/parameter_server/push_correction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "dist/parameter_server/compensation.h"

namespace ringtail {
namespace {

using Form = Compensation::Form;

// Parts of this many elements stay in the first cache.
constexpr int64_t kPart = 2048;
// Of the running mean of steps: about the last ten updates.
constexpr double kStepDecay = 0.9;

double MeanChange(std::span<const float> before, std::span<const float> after) {
  double sum = 0;
  for (size_t i = 0; i < before.size(); ++i) sum += std::abs(after[i] - before[i]);
  return before.empty() ? 0 : sum / static_cast<double>(before.size());
}

}  // namespace

PushCorrection::PushCorrection(const AsynchronousRule& rule, int64_t elements, int versions,
                               VersionRing::Format format)
    : rule_(rule),
      elements_(elements),
      limit_(rule.compensation.limit > 0 ? rule.compensation.limit
                                         : std::numeric_limits<double>::infinity()),
      versions_(elements, versions, format) {
  if (rule.compares()) then_.resize(std::min(kPart, elements));
  if (rule.compares() || rule.compensation.form == Form::kDana) corrected_.resize(elements);
  if (rule.compensation.form == Form::kDana) velocity_sum_.resize(elements);
}

void PushCorrection::OnPull(int worker, int64_t version, std::span<const float> weights) {
  if (!rule_.compares()) return;
  if (rule_.compensation.form == Form::kDana) {
    // (Of an update of several pushes, all of a version count as given what the first one was.)
    sent_.resize(elements_);
    CopyForWorker(weights, sent_);
    versions_.Keep(version, sent_);
  } else {
    versions_.Keep(version, weights);
  }
  pulls_[worker].push_back(version);
}

void PushCorrection::CopyForWorker(std::span<const float> weights, std::span<float> out) const {
  if (rule_.compensation.form == Form::kDana) {
    LookAhead(weights, velocity_sum_, learning_rate_ * rule_.compensation.decay, out);
  } else {
    std::ranges::copy(weights, out.begin());
  }
}

bool PushCorrection::Compares(int64_t staleness, double epoch) const {
  if (!rule_.compares() || staleness == 0) return false;
  return rule_.weight.form == StalenessWeight::Form::kGapAware ||
         epoch >= rule_.compensation.start_epoch;
}

bool PushCorrection::CanCorrect(const GradientPush& push, int64_t version, double epoch) const {
  return !Compares(version - push.base_version, epoch) || versions_.Has(push.base_version);
}

std::span<const float> PushCorrection::Correct(const GradientPush& push, int64_t version,
                                               double epoch, std::span<const float> weights) {
  if (rule_.compensation.form == Form::kAdaptive) {
    std::vector<float>& squares = mean_squares_[push.worker];
    squares.resize(elements_);  // zeros, of a worker that has joined later
    UpdateMeanSquares(push.gradient, push.images, rule_.compensation.decay, squares);
  }
  std::span<const float> gradient = push.gradient;
  if (Compares(version - push.base_version, epoch)) {
    for (int64_t begin = 0; begin < elements_; begin += kPart) CorrectPart(push, begin, weights);
    gradient = corrected_;
  }
  return rule_.compensation.form == Form::kDana ? AddVelocity(push, gradient) : gradient;
}

void PushCorrection::CorrectPart(const GradientPush& push, int64_t begin,
                                 std::span<const float> weights) {
  const int64_t size = std::min(kPart, elements_ - begin);
  const std::span<float> then(then_.data(), size);
  versions_.Read(push.base_version, begin, then);
  const std::span<const float> gradient = push.gradient.subspan(begin, size);
  const std::span<float> out = std::span(corrected_).subspan(begin, size);
  const WeightsOfPush both{.then = then, .now = weights.subspan(begin, size)};
  switch (rule_.compensation.form) {
    case Form::kConstant:
      CompensateDelay(gradient, push.images, both, rule_.compensation.strength, limit_, out);
      return;
    case Form::kAdaptive: {
      const auto squares = std::span<const float>(mean_squares_.at(push.worker));
      CompensateDelayAdaptively(gradient, push.images, both, squares.subspan(begin, size),
                                rule_.compensation.strength, limit_, out);
      return;
    }
    case Form::kNone:
    case Form::kDana:
      break;
  }
  if (mean_step_ > 0) {
    WeighByGap(gradient, both, mean_step_, out);
  } else {
    std::ranges::copy(gradient, out.begin());  // no update has changed anything
  }
}

std::span<const float> PushCorrection::AddVelocity(const GradientPush& push,
                                                   std::span<const float> gradient) {
  std::vector<float>& velocity = velocities_[push.worker];
  velocity.resize(elements_);
  AddToVelocity(gradient, push.images, rule_.compensation.decay, velocity, velocity_sum_,
                corrected_);
  return corrected_;
}

void PushCorrection::OnPush(int worker, int64_t base_version) {
  const auto at = pulls_.find(worker);
  if (at == pulls_.end()) return;
  // What was pulled before and not used; and this pull, but not one ahead that got the same version.
  bool released = false;
  std::erase_if(at->second, [&](int64_t version) {
    if (version > base_version || (version == base_version && std::exchange(released, true))) {
      return false;
    }
    versions_.Release(version);
    return true;
  });
}

void PushCorrection::BeforeUpdate(std::span<const float> weights) {
  if (rule_.weight.form != StalenessWeight::Form::kGapAware) return;
  before_.assign(weights.begin(), weights.end());
}

void PushCorrection::AfterUpdate(std::span<const float> weights, double learning_rate,
                                 int64_t updates) {
  learning_rate_ = learning_rate;
  if (rule_.weight.form != StalenessWeight::Form::kGapAware) return;
  // (The mean of all as long as these are fewer than the running mean would remember.)
  const double decay = std::min(kStepDecay, 1 - 1 / static_cast<double>(updates));
  mean_step_ = decay * mean_step_ + (1 - decay) * MeanChange(before_, weights);
}

void PushCorrection::AddUpVelocities() {
  std::ranges::fill(velocity_sum_, 0.0F);
  for (const auto& [worker, velocity] : velocities_) {
    for (int64_t i = 0; i < elements_; ++i) velocity_sum_[i] += velocity[i];
  }
}

void PushCorrection::SaveMemory(std::span<float> block, RuleScalars* scalars) {
  scalars->learning_rate = learning_rate_;
  scalars->mean_step = mean_step_;
  if (rule_.compensation.form == Form::kDana) {
    AddUpVelocities();
    std::ranges::copy(velocity_sum_, block.begin());
  }
  if (rule_.compensation.form != Form::kAdaptive) return;
  std::ranges::fill(block, 0.0F);
  const float share = 1 / static_cast<float>(std::max<size_t>(mean_squares_.size(), 1));
  for (const auto& [worker, squares] : mean_squares_) {
    for (int64_t i = 0; i < elements_; ++i) block[i] += share * squares[i];
  }
}

void PushCorrection::RestoreMemory(std::span<const float> block, const RuleScalars& scalars,
                                   std::span<const int> workers) {
  learning_rate_ = scalars.learning_rate;
  mean_step_ = scalars.mean_step;
  if (block.empty() || workers.empty()) return;
  RT_CHECK(std::ssize(block) == elements_, "a block of the shard's size");
  if (rule_.compensation.form == Form::kAdaptive) {
    for (const int worker : workers) mean_squares_[worker].assign(block.begin(), block.end());
    return;
  }
  if (rule_.compensation.form != Form::kDana) return;
  const float share = 1 / static_cast<float>(workers.size());
  for (const int worker : workers) {
    std::vector<float>& velocity = velocities_[worker];
    velocity.resize(elements_);
    for (int64_t i = 0; i < elements_; ++i) velocity[i] = share * block[i];
  }
  AddUpVelocities();
}

void PushCorrection::DropPulls(int worker) {
  for (const int64_t version : pulls_[worker]) versions_.Release(version);
  pulls_.erase(worker);
}

void PushCorrection::Remove(int worker) {
  DropPulls(worker);
  mean_squares_.erase(worker);
  const auto at = velocities_.find(worker);
  if (at == velocities_.end()) return;
  for (int64_t i = 0; i < elements_; ++i) velocity_sum_[i] -= at->second[i];
  velocities_.erase(at);
}

}  // namespace ringtail
