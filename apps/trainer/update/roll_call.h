// RollCall: what all ranks tell each other in a step: how long what took, and whether one of them was
// told to stop. Alone it is this process's word.
//
//   rank 0   38 ms forward, 71 ms backward, ...
//   rank 1   36 ms forward, 74 ms backward, ...   SIGTERM      -> all ranks stop after this step
//
//   trainer thread    .. gradients |Begin| optimizer              |Finish| next step
//   rt-comm                         [roll call]
//
// It travels while the weights are updated, so that no rank waits for it unless the network takes
// longer than the optimizer. Ranks wait for each other where gradients are added up.
// Thread-safety: the trainer thread. Errors: those of the world. Cost: an allgather of 88 bytes.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_

#include <cstdint>
#include <span>
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

  // All ranks, while the communication thread is idle; then Finish, before anything else is
  // exchanged.
  void Begin(const RankMetrics& own, double gradient_squares);
  // What all have said, by rank; valid until the next Begin.
  StatusOr<std::span<const RankStep>> Finish();
  double waited_seconds() const { return waited_seconds_; }  // in the last Finish; alone 0

  // Several ranks: of the first roll call that heard one, and in it of the lowest rank. Alone: the
  // signal as soon as it was sent. 0: none.
  int stop_signal() const;

 private:
  TrainingWorld* const world_;
  std::vector<RankStep> all_;
  int64_t job_ = 0;  // of the communication thread
  double waited_seconds_ = 0;
  int agreed_signal_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_ROLL_CALL_H_
