// A config as a list of names and values, so that ranks can compare their configs field by field.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_
#define RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_

#include <string>
#include <utility>
#include <vector>

#include "apps/run.pb.h"

namespace ringtail {

using ConfigField = std::pair<std::string, std::string>;  // "train.batch", "64"

// The fields that must be equal on all ranks of a run: every field, defaults included, except those
// that describe one rank (path and layout of the images, threads, workers, caches) and those of how
// the run began, of which one rank tells the others (weights, which it reads; the precision that
// was measured; begun_epochs). A layer is one field: "net.layer[conv1]".
std::vector<ConfigField> SharedConfigFields(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_CONFIG_FIELDS_H_
