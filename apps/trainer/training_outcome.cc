#include "apps/trainer/training_outcome.h"

#include <fmt/core.h>

#include "core/counted.h"

namespace ringtail {

using Kind = TrainingOutcome::Kind;

TrainingOutcome StoppedBy(int signal, const TrainingProgress& progress, int64_t total_steps,
                          int64_t saved_step) {
  const std::string next = saved_step == progress.step ? "continue with --resume"
                           : saved_step >= 0
                               ? fmt::format("--resume continues from step {}", saved_step)
                               : "no checkpoint was written: --resume begins from step 0";
  return {.kind = Kind::kStopped,
          .message = fmt::format("stopped by a signal after step {} of {}; {}", progress.step,
                                 total_steps, next),
          .signal = signal};
}

TrainingOutcome NotFinite(const std::string& where, const TrainingProgress& progress,
                          int64_t saved_step) {
  const std::string intact = saved_step < 0
                                 ? "no checkpoint was written yet"
                                 : fmt::format("the checkpoint of step {} is intact", saved_step);
  return {.kind = Kind::kNotFinite,
          .message = fmt::format("at step {} {}; {}; try a lower optim.learning_rate, a longer "
                                 "optim.warmup, or optim.clip_norm=1",
                                 progress.step, where, intact)};
}

TrainingOutcome Finished(const TrainingProgress& progress, int64_t total_steps,
                         const std::string& final_path) {
  std::string message =
      fmt::format("trained for {} of {}", progress.step, Counted(total_steps, "step"));
  if (progress.best_step >= 0) {
    message += fmt::format("; best validation accuracy {:.2f} % after step {}",
                           100 * progress.best_accuracy, progress.best_step);
  }
  if (progress.skipped_steps > 0) {
    message += fmt::format("; {} left out (not finite)", Counted(progress.skipped_steps, "step"));
  }
  return {.kind = progress.step < total_steps ? Kind::kReachedAccuracy : Kind::kFinished,
          .message = message + fmt::format("; network in {}", final_path)};
}

}  // namespace ringtail
