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

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "apps/config/run_config.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "apps/trainer/checkpoint/training_state.h"
#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/pipeline/stage_choice.h"
#include "apps/trainer/pipeline/stage_messages.h"
#include "apps/trainer/sharding/shard_choice.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_observer.h"
#include "apps/trainer/training_world.h"
#include "core/fast_bf16_products.h"
#include "core/status.h"

namespace ringtail {

struct TrainingRunOptions {
  const LoadedConfig* loaded = nullptr;
  const TrainingData* data = nullptr;
  RunDirectory* directory = nullptr;     // null on ranks that write no files
  TrainingObserver* observer = nullptr;  // may be null
  BatchRequest batch = {};
  // A warm start (checkpoint/start_weights.h), for the rank whose state the others receive; empty:
  // none.
  std::string_view start_weights;
  // Of the world, whose ranks may divide layers among them (dist.model_parallel).
  int rank = 0, ranks = 1;
  bool resumes = false;  // the batch is divided as it was
  // Of a pipeline: the last layer of each stage but the last one (pipeline/stage_cut.h).
  std::span<const std::string> cut_after = {};
  // What the optimizer may take (OptimizerOptions); of several ranks, what they agreed on
  // (update/bf16_agreement.h).
  bool bf16_products = FastBf16Products();
};

struct TrainingRun {
  // Creates the network and initialises its weights, with what train.freeze names frozen.
  // InvalidArgument if the images have more classes than the network, or start_weights does not
  // fit.
  static StatusOr<TrainingRun> Create(const TrainingRunOptions& options);

  const RunConfig& config() const { return options.loaded->config; }
  // Null on ranks that write no files.
  const CheckpointDirectory* checkpoints() const {
    return options.directory != nullptr ? &options.directory->checkpoints() : nullptr;
  }

  // From now on the layers of train.freeze are frozen, or are not; their weights stay. No effect if
  // it is so. `thaw_step`: the plan's.
  Status Freeze(bool frozen, int64_t thaw_step);

  // All ranks, where they divide layers or have layers of their own (then `link` is there): gives each
  // its part of what point.source_rank has read, or has started with.
  Status ShareParts(TrainingWorld* world, StageLink* link, const ResumePoint& point);
  // Of this rank, with its current number of threads.
  Numerics numerics() const;
  // Whether a rank's state is a part of the network's.
  bool is_divided() const { return shards.divides() || stage.divides(); }

  TrainingRunOptions options;
  std::string start_report;  // what the warm start has taken; empty: there was none
  bool frozen = false;
  ShardChoice shards;  // the same layers on every rank
  StageChoice stage;   // the layers of this rank
  TrainingState state;
  // A warm start where ranks have parts: the whole network, until they have theirs.
  std::unique_ptr<Model> start_model;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_RUN_H_
