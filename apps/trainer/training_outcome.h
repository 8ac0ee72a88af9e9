// TrainingOutcome: how a run ended, and a sentence that says what to do next.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_OUTCOME_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_OUTCOME_H_

#include <cstdint>
#include <string>

#include "apps/run.pb.h"
#include "apps/trainer/checkpoint/training_state.h"

namespace ringtail {

struct TrainingOutcome {
  enum class Kind {
    kFinished,         // all epochs
    kReachedAccuracy,  // train.until_accuracy
    kOutOfPatience,    // train.patience
    kThaws,            // what was frozen trains from here on: the run continues (train_to_end.h)
    kStopped,          // by a signal; resumable
    kNotFinite,        // on_nan
  };
  Kind kind = Kind::kFinished;
  std::string message;  // one sentence for people
  std::string advice;   // another one, for the next run; empty: none
  int signal = 0;       // kStopped: the signal that this rank or another received
};

// `saved_step`: of the last checkpoint on disk; -1: none.
TrainingOutcome StoppedBy(int signal, const TrainingProgress& progress, int64_t total_steps,
                          int64_t saved_step);
TrainingOutcome NotFinite(const std::string& where, const TrainingProgress& progress,
                          int64_t saved_step);
// `folder`: of the run, with its final and best network; empty: this rank writes none.
TrainingOutcome Finished(TrainingOutcome::Kind kind, const TrainingProgress& progress,
                         int64_t total_steps, const TrainConfig& config, const std::string& folder);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_OUTCOME_H_
