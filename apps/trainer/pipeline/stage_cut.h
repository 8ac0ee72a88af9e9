// Where a pipeline's network is cut: as the config says, or so that stages take as long as each other.
//
//   rank 0   forward and backward of one micro-batch, by layer -> PartitionLayers -> cuts -> all ranks
//
// Rank 0 measures the whole network, with micro-batches of the run, while the others wait. What it
// cannot measure, because the network does not fit into its memory, it takes from floating-point
// operations, and says so. A cut that keeps to the memory of rank 0 is taken before a faster one.
// Thread-safety: the trainer thread. Errors: those of the net and the world; InvalidArgument, at the
// field, if the net has too few places.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CUT_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CUT_H_

#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/collectives/link_model.h"

namespace ringtail {

// Between the stages of neighbouring ranks, as measured.
LinkModel StageLinkModel(const TrainingWorld& world);

// All ranks; the same on all: the last layer of each stage but the last one. Empty without a pipeline.
// Cost: where it measures, some steps of a micro-batch, and of convolutions that are new.
StatusOr<std::vector<std::string>> DecideCut(const LoadedConfig& loaded, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CUT_H_
