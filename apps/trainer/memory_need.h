// What a rank needs to train, before it takes any of it: so that what is too large is refused in a
// sentence, and not ended by the kernel in the first step.
//
//   weights, gradients, optimizer state, averages   + activations and work of a part of a batch
//
// Memory that was taken is not used yet, so checks of each part by itself would all pass.
// Thread-safety: functions without state. Cost: that of planning a net, milliseconds.
#ifndef RINGTAIL_APPS_TRAINER_MEMORY_NEED_H_
#define RINGTAIL_APPS_TRAINER_MEMORY_NEED_H_

#include <cstdint>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "layers/net/model.h"

namespace ringtail {

struct TrainingMemory {
  int64_t weight_bytes = 0;      // with all that is kept for them
  int64_t activation_bytes = 0;  // of the largest image size of the run
  int64_t sum() const { return weight_bytes + activation_bytes; }
};

// `model` may be without memory; `images`: of a part of a batch, 0: not known, nothing is counted for it;
// `alive`: parts under way at a time (pipeline/).
StatusOr<TrainingMemory> MemoryToTrain(const LoadedConfig& loaded, Model* model, int64_t images,
                                       int alive);
// ResourceExhausted with both parts and what is there, if that is less.
Status CheckMemoryToTrain(const LoadedConfig& loaded, Model* model, int64_t images, int alive);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_MEMORY_NEED_H_
