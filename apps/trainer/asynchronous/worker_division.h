// How many images the workers of an asynchronous run compute with, and how many make one update.
//
//   SYNCHRONOUS   4 workers, train.batch 16     tickets of 16 images each, an update of all: 64
//   ASYNCHRONOUS  4 workers, train.batch 16     tickets of 16, each an update: 16
//   SOFT_SYNC     splits: 2                     tickets of 16, an update of 2 pushes: 32
//
//   dedicated: true, servers: 1                 rank 0 serves, and has no batch; 3 workers
//
// What the plan calls a step is an update at the start of the run, and stays as many images in
// any world, as rates, phases and evaluations follow images. Where an update is of all workers,
// their batches divide it (division/batch_division.h); elsewhere a worker has train.batch, or
// --local-batch, whatever the number of workers.
// Thread-safety: functions without state. Errors: those of DivideBatch.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_DIVISION_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_DIVISION_H_

#include <cstdint>

#include "apps/run.pb.h"
#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/parameter_server/parameter_server.pb.h"

namespace ringtail {

struct WorkerDivision {
  BatchDivision batches;        // of one gradient; 0 in `all` for a rank that only serves
  int64_t images_per_step = 0;  // of an update at the start of the run
};

// Ranks that serve and do not compute: the first so many. InvalidArgument if none is left, or if it
// is not said how many serve.
StatusOr<int> DedicatedServers(const AsynchronousConfig& config, int ranks);

// Ranks that compute.
int WorkersOf(const RankBatches& batches);

// All ranks. `config` uses servers; `saved` is what CheckpointDivision made.
StatusOr<WorkerDivision> DivideAmongWorkers(const BatchRequest& request, const RunConfig& config,
                                            const SavedBatches& saved, const MeasureSpeed& measure,
                                            TrainingWorld* world);

// What a checkpoint keeps: the images of a step as the global batch, and the workers' batches where
// they divide it.
RankBatches CheckpointDivision(const RankBatches& batches, int64_t images_per_step);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_DIVISION_H_
