#include "apps/parameter_server/divergence_guard.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringtail {
namespace {

// Of the loss of chance.
constexpr double kLearnt = 0.9, kWorse = 1.5;
constexpr int64_t kWatchedPushes = 32, kWatchesOfEpoch = 4;

}  // namespace

DivergenceGuardOptions WatchLoss(int64_t images_per_push, int64_t images_per_epoch,
                                 int64_t classes) {
  return {.images = static_cast<double>(
              std::max(kWatchedPushes * images_per_push, images_per_epoch / kWatchesOfEpoch)),
          .chance = std::log(static_cast<double>(classes))};
}

DivergenceGuard::Verdict DivergenceGuard::Add(double loss_sum, int64_t images, int64_t staleness,
                                              bool finite) {
  if (!finite) return AddNotFinite();
  not_finite_in_a_row_ = 0;
  const auto count = static_cast<double>(images);
  Smooth(loss_sum / count, count, static_cast<double>(staleness));
  if (seen_ <= options_.images) {
    best_ = loss_;
    return Verdict::kFine;
  }
  best_ = std::min(best_, loss_);
  const bool lost = best_ <= kLearnt * options_.chance && loss_ >= options_.chance;
  if (diverged_ || (!lost && loss_ <= kWorse * options_.chance)) return Verdict::kFine;
  diverged_ = true;
  report_ = fmt::format(
      "the training loss was {:.3f} and is {:.3f}, where chance has {:.3f}, with gradients {:.1f} "
      "updates old on average, after {:.0f} images",
      best_, loss_, options_.chance, staleness_, seen_);
  return Verdict::kDiverges;
}

DivergenceGuard::Verdict DivergenceGuard::AddNotFinite() {
  if (++not_finite_in_a_row_ != options_.most_not_finite + 1) return Verdict::kFine;
  report_ = fmt::format("{} gradients in a row are not finite, after {:.0f} images",
                        not_finite_in_a_row_, seen_);
  return Verdict::kNotFinite;
}

// The mean of all, as long as these are fewer than the running mean covers.
void DivergenceGuard::Smooth(double loss, double images, double staleness) {
  seen_ += images;
  const double share = images / std::min(seen_, std::max(options_.images, images));
  loss_ += share * (loss - loss_);
  staleness_ += share * (staleness - staleness_);
}

std::string AdviceAgainstDivergence(const AsynchronousRule& rule, double momentum) {
  std::vector<std::string> advice;
  if (!rule.synchronous() && rule.weight.form == StalenessWeight::Form::kOne) {
    advice.emplace_back("let late gradients count less (dist.asynchronous.weight: INVERSE)");
  }
  if (!rule.synchronous() && momentum > 0) {
    advice.emplace_back(
        "take the momentum out that asynchrony has anyway (dist.asynchronous.as_published: false, "
        "or optim.sgd.momentum: 0)");
  }
  advice.emplace_back("lower optim.learning_rate or take a longer optim.warmup");
  if (!rule.synchronous()) {
    advice.emplace_back(
        "let fewer gradients be under way: fewer workers, or an update of several pushes "
        "(rule: SOFT_SYNC)");
  }
  return fmt::format("{}", fmt::join(advice, "; "));
}

}  // namespace ringtail
