// StageReport: says after some steps of a pipeline how long its ranks wait, beside what the schedule
// itself would make of the stages' measured times (dist/pipeline/schedule_cost.h).
//
//   20 steps: forward and backward took 412.3 ms each; the schedule, with the measured times of stages:
//   405.1 ms (-2 %); ranks wait for 12.5 % of it (the schedule: 11.3 %; equal stages: 11.1 %)
//
// An observer between the trainer and the one that shows progress. Of the first pipeline; steps whose
// image size or batch changes begin anew. Cost: a few additions per step.
// Thread-safety: the trainer thread of rank 0. Errors: none.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_REPORT_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/generation.h"
#include "apps/trainer/pipeline/stage_choice.h"
#include "apps/trainer/training_observer.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/pipeline/schedule_cost.h"

namespace ringtail {

// What crosses and how, of micro-batches of images of one size.
struct StageTraffic {
  int64_t image_size = 0;
  std::vector<BoundaryCost> boundaries;
  LinkModel link;
};
StatusOr<StageTraffic> TrafficOf(const LoadedConfig& loaded, const StageChoice& choice,
                                 int64_t images, int64_t image_size, const TrainingWorld& world);

// Of one step, by stage: means of ranks' own times.
struct StageTimes {
  std::vector<double> forward_s, backward_s, waited_s;
};
std::string CompareWithSchedule(const PipelineShape& shape, const StageTraffic& traffic,
                                int64_t steps, const StageTimes& times);

class StageReport : public TrainingObserver {
 public:
  static constexpr int64_t kWarmUpSteps = 5, kComparedSteps = 20;

  // `next` is told everything, and must outlive the report.
  explicit StageReport(TrainingObserver* next) : next_(next) {}
  // From now on steps of the generation are watched, once; nothing where there is no pipeline. Errors:
  // those of TrafficOf.
  Status Watch(const Generation& generation);

  void OnStep(const Metrics& step, const TrainingPlan& plan) override;
  void OnRound(const Metrics& round) override { next_->OnRound(round); }
  void OnBatchGrowth(const std::string& what) override;
  void OnEvaluation(const Metrics& evaluation, bool best_so_far) override {
    next_->OnEvaluation(evaluation, best_so_far);
  }

 private:
  void BeginAnew();

  TrainingObserver* const next_;
  bool watches_ = false;
  PipelineShape shape_;
  StageTraffic traffic_;
  int64_t steps_ = 0;
  StageTimes sums_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_REPORT_H_
