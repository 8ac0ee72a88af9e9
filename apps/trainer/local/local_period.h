// LocalPeriod: at which step a round of local steps ends (dist.local.period, period_rule).
//
//   FIXED      H = period
//   QUADRATIC  H = max(period, floor((alpha / rate)^2)); `period` while the rate still rises
//              (Gu et al. 2024, "A Quadratic Synchronization Rule for Distributed Deep Learning")
//   AUTO       H = ceil(T / t): T seconds of an exchange, t of a step, medians over the first
//              rounds of each image size. Rounds that do not overlap leave T a tenth of the time.
//
// A round never continues beyond a change of the image size or of the batch, the end of the dense
// epochs, or the end of the run. Whatever the rule: when what the ranks have changed points in
// directions that differ too much (mean cosine of eight rounds below min_cosine
// by more than chance), H is halved, for the
// rest of the run. Where no cosine is known, as behind codecs (mean_cosine.h), it is not judged.
// All ranks call AfterRound with the same readings and so end their rounds at the same steps.
// Thread-safety: the trainer thread. State: PeriodProgress, for checkpoints.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_PERIOD_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_PERIOD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/training_plan.h"
#include "dist/dist.pb.h"
#include "optim/optim.pb.h"

namespace ringtail {

class LocalPeriod {
 public:
  static constexpr int64_t kFirstAuto = 4;  // steps of a round before anything is measured
  static constexpr int64_t kMostAuto = 64;  // unless the config says how many
  static constexpr int64_t kWatched = 8;    // rounds over which min_cosine is judged
  static constexpr size_t kReadings = 3;    // rounds that AUTO measures

  // What is known after a round; the same on all ranks.
  struct Reading {
    double step_seconds = 0;      // of the slowest rank
    double exchange_seconds = 0;  // of the longest exchange; 0: not known
    // Mean between what two ranks have changed (mean_cosine.h); none: not known.
    std::optional<double> cosine;
  };

  // `plan` must outlive it; `optim`: after batch scaling.
  LocalPeriod(const LocalConfig& config, const OptimConfig& optim, const TrainingPlan* plan);

  // The first step that is not exchanged by itself.
  int64_t first_step() const { return first_step_; }
  // The number of steps done when the round that begins after `begin` steps ends.
  int64_t RoundEnd(int64_t begin) const;
  // After a round that began after `begin` steps.
  void AfterRound(int64_t begin, const Reading& reading);

  const PeriodProgress& progress() const { return progress_; }
  // What the last changes of H were decided by: the mean cosine of the rounds that were judged, the
  // medians of those that AUTO measured.
  const Reading& decided_by() const { return decided_by_; }
  void Restore(const PeriodProgress& progress) { progress_ = progress; }

 private:
  int64_t MostMeasured() const;  // steps of a round, by AUTO
  int64_t StepsFrom(int64_t begin) const;
  bool IsCut(int64_t begin, int64_t step) const;
  void Watch(int64_t begin, double cosine);
  void Measure(int64_t begin, const Reading& reading);

  const LocalConfig config_;
  const OptimConfig optim_;
  const TrainingPlan* const plan_;
  const int64_t first_step_;
  PeriodProgress progress_;
  Reading decided_by_;
  std::vector<Reading> readings_;  // of AUTO, at readings_size_
  int64_t readings_size_ = 0;      // image size
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_PERIOD_H_
