// How a run divides its steps among the ranks, and what its checkpoints say of that.
//
//   global_batch      64
//   local_batches     43,21
//   threads_of_ranks  2,1
//   machines          a line for each rank, if it divided by speed
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_SAVED_DIVISION_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_SAVED_DIVISION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"

namespace ringtail {

// Of a checkpoint that says nothing of it: empty.
struct RankBatches {
  int64_t global_batch = 0;           // before it has grown (optim/batch_growth.h)
  std::vector<int64_t> batches;       // by rank
  std::vector<std::string> machines;  // by rank, if divided by speed
  std::vector<int64_t> threads;       // by rank, that compute
};

// DataLoss if it is damaged.
StatusOr<RankBatches> ReadDivision(const Checkpoint& checkpoint);
void AddDivision(const RankBatches& division, std::map<std::string, std::string>* metadata);

// All ranks: rank 0's, without the threads, which each knows of its own.
StatusOr<RankBatches> ShareDivision(const RankBatches& saved, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_SAVED_DIVISION_H_
