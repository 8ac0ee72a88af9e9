// TrainingRun: what a training run consists of, whichever ranks work on it. It outlives the worlds
// that train it.
//
//   TrainingRun  config, images, folder, observer; weights, optimizer state, progress
//   Generation   the run in one world: which rank computes which rows, what happens at which step
//   Trainer      trains one generation
//
// Thread-safety: the trainer thread. The pointers are not owned and must outlive the run.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_RUN_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_RUN_H_

#include "apps/config/run_config.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "apps/trainer/checkpoint/training_state.h"
#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_observer.h"
#include "core/status.h"

namespace ringtail {

struct TrainingRunOptions {
  const LoadedConfig* loaded = nullptr;
  const TrainingData* data = nullptr;
  RunDirectory* directory = nullptr;     // null on ranks that write no files
  TrainingObserver* observer = nullptr;  // may be null
  BatchRequest batch = {};
};

struct TrainingRun {
  // Creates the network and initialises its weights. InvalidArgument if the images have more
  // classes than the network.
  static StatusOr<TrainingRun> Create(const TrainingRunOptions& options);

  const RunConfig& config() const { return options.loaded->config; }
  // Null on ranks that write no files.
  const CheckpointDirectory* checkpoints() const {
    return options.directory != nullptr ? &options.directory->checkpoints() : nullptr;
  }

  TrainingRunOptions options;
  TrainingState state;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_RUN_H_
