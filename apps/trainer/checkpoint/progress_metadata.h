// TrainingProgress as the strings of a checkpoint's `__metadata__` and back. Numbers keep all their
// bits. Errors: DataLoss that names the key. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_PROGRESS_METADATA_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_PROGRESS_METADATA_H_

#include <map>
#include <string>

#include "apps/trainer/checkpoint/training_state.h"
#include "core/status.h"

namespace ringtail {

std::map<std::string, std::string> ProgressMetadata(const TrainingProgress& progress);
StatusOr<TrainingProgress> ParseProgress(const std::map<std::string, std::string>& metadata);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_PROGRESS_METADATA_H_
