// How the images of a step are divided among the ranks.
//
//   one way or the other     evenly; as --local-batch says on each rank; by speed, as it was measured
//   what stays as it is      the global batch of a run that goes on, whoever takes part; and, with
//                            as many ranks as before, each rank's batch, so that it goes on to the
//                            same bits. By speed that holds on machines of the same kinds only.
//   what a share is made of  multiples of train.accumulation, as a rank computes in so many equal
//                            parts: 64 images of 3 ranks, in 4 parts, are 24, 20 and 20
//
// Gradients and losses are sums over samples and divided by the samples of all ranks, so any division
// gives the same steps, but for batch norm without dist.sync_batch_norm (and for rounding).
// Thread-safety: functions without state. Errors: InvalidArgument, the same on all ranks; what
// TrainingWorld says.
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "apps/trainer/checkpoint/saved_division.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// How many images a step is to take. As it comes: train.batch on each rank.
struct BatchRequest {
  int64_t local = 0;      // on this rank; 0: as divided
  bool by_speed = false;  // the same on all ranks; then `local` is 0
  RankBatches saved;      // of a run that goes on; rank 0's counts
  // Images per second of this rank, if that is given and need not be measured.
  std::function<double()> speed;
};

// Rows [first_row, first_row + batch) of each global batch.
struct BatchShare {
  int64_t first_row = 0, batch = 0, global_batch = 0;
};

struct BatchDivision {
  BatchShare own;
  RankBatches all;
  std::string summary;  // in words, if divided by speed
};

// Images per second of this rank with batches of so many images, an even share, while all others
// measure theirs. Called on all ranks or on none.
using MeasureSpeed = std::function<StatusOr<double>(int64_t batch)>;

// All ranks.
StatusOr<BatchDivision> DivideBatch(const BatchRequest& request, const TrainConfig& train,
                                    const MeasureSpeed& measure, TrainingWorld* world);

// A run that goes on keeps the batch of all ranks that it `began` with; 0: not known.
Status CheckGlobalBatch(int64_t began, int64_t now);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_BATCH_DIVISION_H_
