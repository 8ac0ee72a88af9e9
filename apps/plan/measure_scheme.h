// What a compression scheme costs a rank: encoding, decoding and clearing of each layer, one after the
// other as in a step, so that a layer is not in the caches because it was coded just before.
// Seconds of the processor, but for sketches, which are measured as a run does (dist/compression/layer_costs.h).
// Thread-safety: the trainer thread. Cost: a few passes over all gradients. Memory: three times theirs.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_SCHEME_H_
#define RINGTAIL_APPS_PLAN_MEASURE_SCHEME_H_

#include <string>

#include "core/parameter.h"
#include "dist/compression/compression.pb.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

// Once warm-up is over; zeros for layers that travel dense.
SchemeFacts MeasureScheme(const std::string& name, const CompressionConfig& compression,
                          const ParameterArena& arena);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_SCHEME_H_
