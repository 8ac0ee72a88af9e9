// RankBatches: how a run divides its steps among the ranks.
//
//   global_batch   64
//   batches        43, 21
//   threads         2,  1
//   machines       "AMD EPYC 9R14, 2 threads, avx512", ...   if divided by speed
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_RANK_BATCHES_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_RANK_BATCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"

namespace ringtail {

// Empty where a checkpoint does not know.
struct RankBatches {
  int64_t global_batch = 0;           // before it has grown (optim/batch_growth.h)
  std::vector<int64_t> batches;       // by rank
  std::vector<std::string> machines;  // by rank, if divided by speed
  std::vector<int64_t> threads;       // by rank: compute threads
};

// All ranks: those of `source_rank`.
StatusOr<RankBatches> ShareBatches(const RankBatches& batches, int source_rank,
                                   TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_RANK_BATCHES_H_
