#include "apps/trainer/training_outcome.h"

#include <fmt/core.h>

#include "apps/trainer/checkpoint/run_directory.h"
#include "core/storage/checkpoint.h"
#include "core/text/counted.h"

namespace ringtail {

using Kind = TrainingOutcome::Kind;

namespace {

std::string Percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

// Why a run has ended before its last step, and how it continues: " (...)".
std::string ReasonOf(Kind kind, const TrainingProgress& progress, const TrainConfig& config) {
  switch (kind) {
    case Kind::kReachedAccuracy:
      return fmt::format(" (validation reached {}; --resume --until-accuracy 0 continues)",
                         Percent(config.until_accuracy()));
    case Kind::kOutOfPatience:
      return fmt::format(
          " (no better validation accuracy in the last {} after step {}, train.patience; --resume "
          "--set train.patience=0 continues)",
          Counted(config.patience(), "evaluation"), progress.best_step);
    default:
      return "";
  }
}

// "network in runs/a/final.safetensors (validation 65.00 %); the best, 68.33 % after step 28, in
// ..."
std::string NetworksOf(const TrainingProgress& progress, const std::string& folder) {
  std::string text = fmt::format("network in {}/{}", folder, kFinalName);
  if (progress.best_step < 0) return text;
  if (progress.best_step == progress.step) {
    return text + fmt::format(" (validation {}, the best)", Percent(progress.best_accuracy));
  }
  if (progress.last_accuracy >= 0) {
    text += fmt::format(" (validation {})", Percent(progress.last_accuracy));
  }
  return text + fmt::format("; the best, {} after step {}, in {}", Percent(progress.best_accuracy),
                            progress.best_step, BestCheckpointPath(folder));
}

}  // namespace

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

TrainingOutcome Finished(Kind kind, const TrainingProgress& progress, int64_t total_steps,
                         const TrainConfig& config, const std::string& folder) {
  std::string message = fmt::format("trained for {} of {}{}", progress.step,
                                    Counted(total_steps, "step"), ReasonOf(kind, progress, config));
  if (progress.skipped_steps > 0) {
    message += fmt::format("; {} left out (not finite)", Counted(progress.skipped_steps, "step"));
  }
  return {.kind = kind, .message = message + "; " + NetworksOf(progress, folder)};
}

}  // namespace ringtail
