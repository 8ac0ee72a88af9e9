// RollCall: what all ranks tell each other at the end of a step (or of several): how long what
// took, and whether one of them was told to stop. Alone it is this process's word.
//
//   rank 0   38 ms forward, 71 ms backward, ...
//   rank 1   36 ms forward, 74 ms backward, ...   SIGTERM      -> all ranks stop after this step
//
// Thread-safety: the trainer thread. Errors: those of the world. Cost: an allgather of 100 bytes.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_

#include <cstdint>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/metrics.h"

namespace ringtail {

// What one rank says.
struct RankStep {
  int64_t stop_signal = 0;      // sent to this process; 0: none
  double gradient_squares = 0;  // StepExchange::gradient_squares()
  RankMetrics metrics;
};

class RollCall {
 public:
  explicit RollCall(TrainingWorld* world) : world_(world) {}

  // All ranks. By rank.
  StatusOr<std::vector<RankStep>> Hold(const RankMetrics& own, double gradient_squares);

  // Several ranks: of the first roll call that heard one, and in it of the lowest rank. Alone: the
  // signal as soon as it was sent. 0: none.
  int stop_signal() const;

 private:
  TrainingWorld* const world_;
  int agreed_signal_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_
