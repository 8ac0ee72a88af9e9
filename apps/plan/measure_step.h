// Times of whole steps of one rank, part by part: what each part leaves in the caches, or has driven
// out of them, is what the next one finds in a run.
// Thread-safety: the trainer thread. Cost: some steps. Errors: those of the net and of the images.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_STEP_H_
#define RINGTAIL_APPS_PLAN_MEASURE_STEP_H_

#include <cstdint>

#include "apps/plan/measure_facts.h"
#include "apps/plan/measure_update.h"

namespace ringtail {

struct MeasuredStep {
  StepFacts facts;
  double update_s = 0;
  UpdateParts parts;        // of the update
  double deviation = 0;     // of the whole step, as a share of it
  double wake_delay_s = 0;  // of a thread that sleeps meanwhile
};

constexpr int64_t kWarmUpSteps = 2;  // before the steps that count

// Medians of `options.steps` steps of `batch` images, without what input threads take meanwhile.
StatusOr<MeasuredStep> MeasureStep(Model* model, const RunConfig& config, int64_t batch,
                                   int64_t image_size, const MeasureFactsOptions& options,
                                   UpdateOfStep* weights);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_STEP_H_
