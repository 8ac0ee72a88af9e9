// DivergenceGuard: says when a run with servers goes wrong, and what to change.
//
//   loss of pushes |  .-.            worse than knowing nothing: says so, once
//    smoothed      | /   '._
//                  |/       '.  .--   all that was learnt is lost: the same
//    chance 0.69   |----------\/---
//                  |           best
//
//   kDiverges    the loss, a running mean over `images`, is above 1.5 of what a network has that knows
//                nothing; or it is that again, and was at most 0.9 of it
//   kNotFinite   more than `most_not_finite` gradients in a row
//
// The first `images` only make the mean. A network knows nothing if it gives every class the same
// probability: its loss is ln(classes).
// Users of other servers see accuracies of chance, and nothing that says why (mxnet#5287, #15509,
// elasticdl#89).
// Thread-safety: none. Cost: a few operations per push.
#ifndef RINGTAIL_APPS_PARAMETER_SERVER_DIVERGENCE_GUARD_H_
#define RINGTAIL_APPS_PARAMETER_SERVER_DIVERGENCE_GUARD_H_

#include <cstdint>
#include <string>

#include "dist/parameter_server/asynchronous_rule.h"

namespace ringtail {

struct DivergenceGuardOptions {
  double images = 2000;      // > 0
  double chance = 0;         // ln(classes)
  int most_not_finite = 10;  // in a row
};

// Options for a run: the loss is a running mean over 32 pushes, or 1/4 of an epoch if that is more.
DivergenceGuardOptions WatchLoss(int64_t images_per_push, int64_t images_per_epoch,
                                 int64_t classes);

class DivergenceGuard {
 public:
  enum class Verdict { kFine, kDiverges, kNotFinite };
  explicit DivergenceGuard(const DivergenceGuardOptions& options) : options_(options) {}

  // Of one push, or of several: the sum of the images' losses, and how late they were (in updates).
  // What it has found, once: kFine again after that.
  Verdict Add(double loss_sum, int64_t images, int64_t staleness, bool finite);
  // In words, of the last verdict that was not kFine: "the training loss was 0.412 and is 0.731, ..".
  // Empty: there was none.
  const std::string& report() const { return report_; }

 private:
  Verdict AddNotFinite();
  void Smooth(double loss, double images, double staleness);

  const DivergenceGuardOptions options_;
  double seen_ = 0;  // images
  double loss_ = 0, staleness_ = 0;
  double best_ = 0;
  int not_finite_in_a_row_ = 0;
  bool diverged_ = false;
  std::string report_;
};

// What to change if a run of this rule diverges, the most effective first. `momentum`: of the
// optimizer.
std::string AdviceAgainstDivergence(const AsynchronousRule& rule, double momentum);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PARAMETER_SERVER_DIVERGENCE_GUARD_H_
