// How the images of a step are divided among the ranks.
//
//   how               evenly; as --local-batch says on each rank; or by measured speed
//   what never        the global batch of a run that continues, with any number of ranks; and, with
//   changes           as many ranks as before, each rank's batch, so that it continues to the same
//                     bits. By speed that holds only on machines of the same kinds.
//   unit of a share   train.accumulation, since a rank computes its batch in so many equal parts:
//                     64 images of 3 ranks, in 4 parts, are 24, 20 and 20
//
// Gradients and losses are sums over samples, divided by the samples of all ranks, so any division
// gives the same steps, except for batch norm without dist.sync_batch_norm (and for rounding).
// Thread-safety: functions without state. Errors: InvalidArgument, the same on all ranks; those of
// TrainingWorld.
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "apps/trainer/division/rank_batches.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// How many images a step is to take. Default: train.batch on each rank.
struct BatchRequest {
  int64_t local = 0;      // on this rank; 0: as divided
  bool by_speed = false;  // the same on all ranks; then `local` is 0
  // Images per second of this rank; empty: to be measured.
  std::function<double()> speed = {};
};

// How the run divided its batch so far; empty: it begins.
struct SavedBatches {
  RankBatches batches;
  int source_rank = 0;  // whose `batches` count; the same on all ranks
};

// Rows [first_row, first_row + batch) of each global batch.
struct BatchShare {
  int64_t first_row = 0, batch = 0, global_batch = 0;
};

struct BatchDivision {
  BatchShare own;
  RankBatches all;
  std::string summary;  // for people, if divided by speed
};

// Images per second of this rank with batches of `batch` images, an even share, while all other
// ranks measure theirs. Called on all ranks or on none.
using MeasureSpeed = std::function<StatusOr<double>(int64_t batch)>;

// All ranks.
StatusOr<BatchDivision> DivideBatch(const BatchRequest& request, const TrainConfig& train,
                                    const SavedBatches& saved, const MeasureSpeed& measure,
                                    TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_
