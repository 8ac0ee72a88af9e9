// train.precision: AUTO: the precision in which this network's step takes less time here.
//
//   a run that continues   takes what it took, wherever it continues (its config has it)
//   measured before        what the user's cache remembers for this network, batch, image size,
//                          threads, processor and instruction set (layers/algorithm_choices.h)
//   else                   f32 and bf16 are measured, in turn and several times:
//
//     net in  f32   bf16 | bf16  f32  | f32   bf16    each: one step to warm up, then some that count
//
// One net at a time, so that measuring needs no more memory than the run. A step is forward and
// backward of one part of a batch, of random images. bf16 is taken if its median is at least
// kLeastBf16Gain times as fast. Ranks measure at the same time, as they will compute; the slowest
// counts in either precision, as all wait for it.
// Thread-safety: the trainer thread only. Errors: those of net and world; Cancelled once a stop
// signal came.
#ifndef RINGTAIL_APPS_TRAINER_DECIDE_PRECISION_H_
#define RINGTAIL_APPS_TRAINER_DECIDE_PRECISION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "layers/algorithm_choices.h"

namespace ringtail {

// What is measured.
struct StepShape {
  int64_t images = 0, image_size = 0;
};
// A part of the batch, in the phase of image sizes that takes most of the run's time: epochs times
// pixels, as the time of convolutions is proportional to pixels.
StepShape StepOfRun(const RunConfig& config);

struct PrecisionSeconds {
  double float32 = 0, bfloat16 = 0;  // medians
};
// Of this rank, with all ranks of the world measuring.
using MeasurePrecisions = std::function<StatusOr<PrecisionSeconds>(
    const LoadedConfig& loaded, const StepShape& step, TrainingWorld* world)>;
// What is said above. Cost: some two seconds, or eight steps if these take longer; and the
// measurement of convolutions that are new, in both precisions.
StatusOr<PrecisionSeconds> MeasureBothPrecisions(const LoadedConfig& loaded, const StepShape& step,
                                                 TrainingWorld* world);

// What AUTO takes if a step takes so long.
MeasuredPrecision TakeFaster(const PrecisionSeconds& seconds, const StepShape& step);

// "<machines>; precision of <network>, ...": what a choice depends on, in the cache.
std::string PrecisionKey(const RunConfig& config, const StepShape& step,
                         std::vector<std::string> machines);

// All ranks: an AUTO of `loaded` is decided afterwards, by rank 0 for all; no effect on others. What
// rank 0's config has taken already (train.measured_precision) is kept.
Status DecidePrecision(const StepShape& step, TrainingWorld* world, LoadedConfig* loaded,
                       const MeasurePrecisions& measure = MeasureBothPrecisions);
// The same for verbs that compute alone; logs what AUTO takes.
Status DecidePrecisionAlone(const StepShape& step, LoadedConfig* loaded);
// Without measuring: by what this machine has measured before, if it has.
void RecallPrecision(const StepShape& step, LoadedConfig* loaded);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DECIDE_PRECISION_H_
