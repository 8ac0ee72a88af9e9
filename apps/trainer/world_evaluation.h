// Evaluation by all ranks together: each scores a share of the validation images, in proportion to
// its share of a batch, and the results are added up.
// Thread-safety: the trainer thread. Errors: those of evaluation.h and of the world.
#ifndef RINGTAIL_APPS_TRAINER_WORLD_EVALUATION_H_
#define RINGTAIL_APPS_TRAINER_WORLD_EVALUATION_H_

#include <cstdint>
#include <vector>

#include "apps/trainer/evaluation.h"
#include "apps/trainer/generation.h"
#include "core/status.h"

namespace ringtail {

// The validation images that this rank scores. Every image belongs to exactly one rank.
std::vector<int64_t> EvaluationShare(const Generation& generation);

// All ranks. The result over all images, with averaged weights if the run keeps them. Cancelled
// once a stop signal came (alone; several ranks finish first).
StatusOr<EvaluationResult> EvaluateTogether(const Generation& generation);
// This rank alone, all images; otherwise the same. Cancelled once a stop signal came.
StatusOr<EvaluationResult> EvaluateAlone(const Generation& generation);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_WORLD_EVALUATION_H_
