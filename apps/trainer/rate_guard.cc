#include "apps/trainer/rate_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace ringtail {
namespace {

constexpr size_t kEvaluations = 3;  // two falls
constexpr double kHighRate = 0.5;   // of the highest
constexpr double kChance = 2;       // standard errors of the difference of two accuracies
// Of what it was two evaluations before. A run whose accuracy fell from 10.8 to 7.1 % in two epochs (200 classes,
// optim/README.md) had 0.966.
constexpr double kLossFalls = 0.9;
constexpr double kLower = 0.25;  // the rate to try, of the configured one

// Of the difference between two accuracies near `accuracy`, each of so many images.
double StandardError(double accuracy, int64_t images) {
  return std::sqrt(2 * accuracy * (1 - accuracy) / static_cast<double>(images));
}

}  // namespace

bool RateIsTooHigh(std::span<const RateEvidence> evaluations, int64_t validation_images,
                   double highest_rate) {
  if (evaluations.size() < kEvaluations) return false;
  const std::span<const RateEvidence> last = evaluations.last(kEvaluations);
  for (size_t i = 1; i < last.size(); ++i) {
    const bool falls = last[i].accuracy < last[i - 1].accuracy;
    if (!falls || last[i].rate <= kHighRate * highest_rate) return false;
  }
  const RateEvidence &before = last.front(), &now = last.back();
  const double fall = before.accuracy - now.accuracy;
  return fall > kChance * StandardError(before.accuracy, validation_images) &&
         now.training_loss > kLossFalls * before.training_loss;
}

void RateGuard::AddStep(double loss, double rate) {
  if (!std::isfinite(loss)) return;
  loss_sum_ += loss;
  ++steps_;
  rate_ = rate;
  highest_rate_ = std::max(highest_rate_, rate);
}

std::string RateGuard::AddEvaluation(double accuracy, int64_t images, double configured) {
  if (steps_ == 0 || images == 0) return "";
  evaluations_.push_back({.accuracy = accuracy, .training_loss = MeanLoss(), .rate = rate_});
  loss_sum_ = 0;
  steps_ = 0;
  if (warned_ || !RateIsTooHigh(evaluations_, images, highest_rate_)) return "";
  warned_ = true;
  const RateEvidence& before = evaluations_[evaluations_.size() - kEvaluations];
  return fmt::format(
      "the accuracy has fallen twice in a row, from {:.1f} to {:.1f} %, and the training loss "
      "hardly falls: the learning rate is too high for these images; begin anew with --set "
      "optim.learning_rate={:.2g}",
      100 * before.accuracy, 100 * accuracy, kLower * configured);
}

}  // namespace ringtail
