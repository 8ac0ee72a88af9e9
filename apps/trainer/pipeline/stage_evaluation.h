// Evaluation by the stages of a pipeline: the first one loads images, the last one has the logits.
// Thread-safety: the trainer thread. Errors: those of evaluation.h and of the world. Cost: as on one
// machine, with the stages at work on different batches at the same time.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_EVALUATION_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_EVALUATION_H_

#include <cstdint>
#include <vector>

#include "apps/trainer/evaluation.h"
#include "apps/trainer/pipeline/stage_messages.h"
#include "core/status.h"

namespace ringtail {

// All ranks of a pipeline, with the same arguments but for `model`, this stage's. The score of the
// images in the last stage; in others nothing is scored.
StatusOr<EvaluationResult> EvaluateStage(StageLink* link, Model* model, const Dataset& dataset,
                                         const std::vector<int64_t>& indices,
                                         const DataConfig& data, const EvaluationOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_EVALUATION_H_
