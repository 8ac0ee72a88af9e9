// What a worker's step costs in this process, for scripts that do not say.
// Thread-safety: the trainer thread. Cost: some ten steps. Weights and statistics stay.
#ifndef RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_
#define RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_

#include "apps/config/run_config.h"
#include "apps/emulator/script.pb.h"
#include "apps/emulator/shared_net.h"
#include "core/parameter.h"
#include "core/status.h"

namespace ringtail {

// Medians over a few passes of `rows` of the first batch, and as many updates: ms_per_image and
// update_ms, prepare_ms; with local rounds round_ms; with compression encode_ms and decode_ms.
// `images`: of all workers in a step.
StatusOr<ComputeScript> MeasureCompute(SharedNet* net, ElementRange rows, const RunConfig& config,
                                       ParameterArena* arena, int64_t images);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_
