// The file of the network that --checkpoint names.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// `path` if it is a file. If it is the folder of a run: final.safetensors, else the best checkpoint,
// else the newest; a log line names the choice. NotFound if there is none.
StatusOr<std::string> NetworkFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_
