// How a run divided its steps among the ranks, as its checkpoints say.
//
//   global_batch      64
//   local_batches     43,21
//   threads_of_ranks  2,1
//   machines          a line for each rank, if it divided by speed
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_SAVED_DIVISION_H_
#define RINGTAIL_APPS_TRAINER_SAVED_DIVISION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/checkpoint.h"
#include "core/status.h"

namespace ringtail {

// Empty: the checkpoint says nothing of it.
struct SavedDivision {
  int64_t global_batch = 0;           // before it has grown (optim/batch_growth.h)
  std::vector<int64_t> batches;       // by rank
  std::vector<std::string> machines;  // by rank, if divided by speed
  std::vector<int64_t> threads;       // by rank, that compute
};

// DataLoss if it is damaged.
StatusOr<SavedDivision> ReadDivision(const Checkpoint& checkpoint);
void AddDivision(const SavedDivision& division, std::map<std::string, std::string>* metadata);

// All ranks: rank 0's, without the threads, which each knows of its own.
StatusOr<SavedDivision> ShareDivision(const SavedDivision& saved, TrainingWorld* world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SAVED_DIVISION_H_
