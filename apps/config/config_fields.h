// A config as a list of names and values, so that two of them can be compared field by field, on
// two machines. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_
#define RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_

#include <string>
#include <utility>
#include <vector>

#include "apps/run.pb.h"

namespace ringtail {

using ConfigField = std::pair<std::string, std::string>;  // "train.batch", "64"

// What must be the same on all ranks of a run: every field, defaults included, but for those that
// say where and how one rank runs (where the images are, threads, workers, caches). A layer is
// one field: "net.layer[conv1]".
std::vector<ConfigField> SharedConfigFields(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_
