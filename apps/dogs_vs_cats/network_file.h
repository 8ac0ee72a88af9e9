// Which file the network of --checkpoint is in.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// A file is taken as it is. Of a run's folder: final.safetensors, else the best checkpoint, else the
// newest, and a log line says which. NotFound if there is none.
StatusOr<std::string> NetworkFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_NETWORK_FILE_H_
