// Checks the ranges of TrainConfig (apps/run.proto); errors name the place in the file.
#ifndef RINGTAIL_APPS_CONFIG_CONFIG_CHECK_H_
#define RINGTAIL_APPS_CONFIG_CONFIG_CHECK_H_

#include "apps/run.pb.h"
#include "core/config/text_config.h"
#include "core/status.h"

namespace ringtail {

Status ValidateTrainConfig(const RunConfig& config, const ConfigSource& source);

// Whether train.accumulation may be more than 1: parts of batches need images of certain sizes.
bool MayAccumulate(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_CONFIG_CHECK_H_
