// PredictionReport: says after some steps with images of each size how right their prediction was, by term.
//
//   steps   1 .. 5 | 6 ...................... 55 |          of rounds: from the end of one round to the
//          warm-up | mean of each term           |-> log     end of the first one 50 steps later
//
//   term               predicted (dist/planner/prediction.h)   measured (core/storage/metrics.h)
//   data               data_wait                               data_wait_ms
//   forward, backward  forward; backward with contention       forward_ms, backward_ms
//   exposed exchange   waiting, wire, coding                   exposed_comm_ms, of rounds too
//   update             update, merge, roll call                what remains of the step
//
// An observer between the trainer and the one that shows progress; the trainer measures all of it
// anyway. Cost: a few additions per step. Thread-safety: the trainer thread of rank 0. Errors: none.
#ifndef RINGTAIL_APPS_PLAN_PREDICTION_REPORT_H_
#define RINGTAIL_APPS_PLAN_PREDICTION_REPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/plan/run_advice.h"
#include "apps/trainer/training_observer.h"
#include "core/storage/metrics.h"
#include "dist/planner/prediction.h"

namespace ringtail {

class PredictionReport : public TrainingObserver {
 public:
  static constexpr int64_t kWarmUpSteps = 5, kComparedSteps = 50;
  static constexpr double kFarOff = 0.1;  // of the step: a term that is named

  using Record = std::function<void(const Metrics&)>;

  // `next` is told everything, and must outlive the report. `record` takes the line for
  // metrics.jsonl, after that of the step.
  PredictionReport(TrainingObserver* next, Record record)
      : next_(next), record_(std::move(record)) {}

  // From now on steps are compared, once for each size of images (train.phase), with what is predicted of
  // them: of rounds as long as they turn out to be, of the last ones if they change. Nothing is said of a
  // size that has fewer steps, or for which `predict` fails, nor once the batch has changed.
  void Expect(PredictPeriod predict);

  void OnStep(const Metrics& step, const TrainingPlan& plan) override;
  void OnRound(const Metrics& round) override;
  void OnBatchGrowth(const std::string& description) override;
  void OnEvaluation(const Metrics& evaluation, bool best_so_far) override;

 private:
  struct Sums {
    int64_t steps = 0;
    double data = 0, forward = 0, backward = 0, exchange = 0, whole = 0;  // ms
  };
  void BeginSize(int64_t image_size);
  void Predict(int local_steps);
  void AtBoundary(int64_t step, int local_steps);
  std::vector<PredictedTerm> Terms() const;

  TrainingObserver* const next_;
  const Record record_;
  PredictPeriod predict_;                 // null: nothing to compare
  std::optional<Prediction> prediction_;  // none: not known yet
  int predicted_of_ = 0;                  // local steps of a round, as for predict_
  int64_t image_size_ = 0;                // of the last step
  std::set<int64_t> compared_;            // image sizes
  bool done_ = false;                     // with this one
  int64_t steps_ = 0;                     // of it
  bool summing_ = false;
  Sums sums_;
};

// "50 steps with images of 64 pixels took 265.1 ms each, 252.0 predicted (-5 %): data 0.0 (0.0 predicted),
// forward ...; exposed exchange takes 12 % of the step longer than predicted". The last term is the whole step.
std::string DescribeComparison(int64_t steps, int64_t image_size,
                               const std::vector<PredictedTerm>& terms);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_PREDICTION_REPORT_H_
