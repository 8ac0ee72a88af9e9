// Ranges of DistConfig's fields, with errors that point at the place in the file.
// Thread-safety: a function without state.
#ifndef RINGTAIL_DIST_CONFIG_CHECK_H_
#define RINGTAIL_DIST_CONFIG_CHECK_H_

#include "core/config/text_config.h"
#include "core/status.h"
#include "dist/dist.pb.h"

namespace ringtail {

// `source` may be null. Whether `algorithm` is one is found out where the world is made.
Status ValidateDistConfig(const DistConfig& config, const ConfigSource* source);

// Whether ranks take steps of their own between exchanges (dist.local).
bool UsesLocalRounds(const DistConfig& config);
// Whether ranks have to compute the same bits of the same numbers. Not those that take steps of
// their own from the first one on: what they exchange afterwards is the same on every machine.
bool NeedsSameNumerics(const DistConfig& config);
// Whether ranks have layers of their own (dist.model_parallel.pipeline).
bool UsesPipeline(const DistConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_CONFIG_CHECK_H_
