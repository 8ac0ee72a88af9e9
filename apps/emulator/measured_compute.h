// What a worker's step costs in this process, for scripts that do not say.
//
// Means over so many passes that a second goes by, not medians: under a limit on the processor a pass
// that is shorter than the limit's period is mostly not stopped at all, and sometimes for the rest
// of a period. Coding, which is such a pass, is measured in processor time (MeasureCodedLayers).
// Input threads load images beside the passes if they share the cores that compute.
// Thread-safety: the trainer thread. Cost: nine steps or 1.5 s, whichever is more. Weights and
// statistics stay.
#ifndef RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_
#define RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_

#include "apps/config/run_config.h"
#include "apps/emulator/script.pb.h"
#include "apps/emulator/shared_net.h"
#include "apps/plan/step_images.h"
#include "core/parameter.h"
#include "core/status.h"

namespace ringtail {

// `rows` of the first batch, `images` beside them (as many in a batch), and as many updates:
// ms_per_image, update_ms, prepare_ms, jitter, cores (a quota of less counts as one: both a step and what
// shares its core are measured under it) and wake_delay_ms; with local rounds round_ms; with compression encode_ms and
// decode_ms. `images_per_step`: of all workers. InvalidArgument if steps are coded in one way until
// dist.local.start_epoch, and rounds in another one after it: a script has one cost of coding.
StatusOr<ComputeScript> MeasureCompute(SharedNet* net, ElementRange rows, StepImages* images,
                                       const RunConfig& config, ParameterArena* arena,
                                       int64_t images_per_step);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_MEASURED_COMPUTE_H_
