// SaveForRankZero: another rank that reaches the folder of the run writes what all of them hold,
// once rank 0 is lost.
//
//   rank 0   killed: its connections close .......... its lock on the folder is released
//   rank 1                         loss -> folder in use, tries again .. writes the checkpoint
//   rank 2                         loss -> folder in use, tries again ............ finds it there
//
// The kernel gives the lock back last, after all that the process had in memory.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_SAVE_FOR_RANK_ZERO_H_
#define RINGTAIL_APPS_TRAINER_SAVE_FOR_RANK_ZERO_H_

#include <chrono>
#include <string>

#include "apps/trainer/run_keeper.h"
#include "dist/liveness/progress.h"

namespace ringtail {

// After RunKeeper::SaveAfterFailure on a rank without a directory. Nothing if `run_folder` is not
// reached. Tries for `patience` while another process has the folder; a warning says why nothing
// was written.
void SaveForRankZero(const std::string& run_folder, RunKeeper* keeper, Progress* progress,
                     std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SAVE_FOR_RANK_ZERO_H_
