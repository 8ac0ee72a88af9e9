// The network that a path of a user stands for. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_NETWORK_OF_RUN_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_NETWORK_OF_RUN_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// `path` itself unless it is a folder. Of the folder of a run: final.safetensors, else the best
// checkpoint, else the newest; a log line names the choice. NotFound if there is none.
StatusOr<std::string> NetworkFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_NETWORK_OF_RUN_H_
