// RunDirectory: the folder of a run, and everything that is written there:
//
//   lock                 the process that writes here (core/storage/run_lock.h)
//   config.textproto     the effective config
//   bad_images.csv       images that were left out, if any
//   metrics.jsonl        a line per step and evaluation (core/storage/metrics.h)
//   tensorboard/         the same curves, for TensorBoard (apps/report/event_log.h)
//   checkpoints/         step-*.safetensors, best.safetensors (core/storage/checkpoint.h)
//   final.safetensors    the trained network (apps/trainer/checkpoint/model_file.h)
//
// One process holds it from Open to destruction and follows it when it is renamed: a folder that is
// renamed or deleted meanwhile does no harm to the next run of its name (core/storage/run_lock.h).
// Thread-safety: none. Errors: AlreadyExists if another process holds it; those of the file system.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/report/event_log.h"
#include "apps/run.pb.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "core/storage/metrics.h"
#include "core/storage/run_lock.h"
#include "data/bad_images.h"

namespace ringtail {

inline constexpr char kConfigName[] = "config.textproto";  // in the folder of a run
inline constexpr char kFinalName[] = "final.safetensors";

class RunDirectory {
 public:
  static StatusOr<std::unique_ptr<RunDirectory>> Open(const std::string& path);

  const std::string& path() const { return lock_.run_folder(); }
  std::string BadImagesPath() const { return path() + "/bad_images.csv"; }
  std::string FinalPath() const { return path() + "/" + kFinalName; }
  // Where it is now, to be asked just before writing there (RunLock::Folder).
  StatusOr<std::string> Folder() const { return lock_.Folder(); }
  bool HasCheckpoints() const;

  // Writes config and bad images, and opens metrics and events to append after `step` (-1: a new
  // run).
  Status Begin(const RunConfig& config, const std::vector<BadImage>& bad, int64_t step);

  // Logs an error if the disk has no room for a checkpoint of files of these sizes, in bytes.
  void CheckRoom(std::span<const int64_t> files) const;

  // To be called after each checkpoint. A failure is a warning; from kLoudAfter failures in a row
  // on it is an error that says what a crash would lose. `newest`: the step of the newest
  // checkpoint on disk; -1: none.
  static constexpr int kLoudAfter = 3;
  void CheckpointSaved() { failed_in_a_row_ = 0; }
  void CheckpointFailed(int64_t step, int64_t newest, const Status& why);

  // Metrics or events that cannot be written cost one warning; training continues.
  void Record(const Metrics& metrics);
  // In place of Begin and Record, for a rank that takes the folder over from one that died: the
  // lines of one step, which may have been written before. Events begin anew when the run does.
  void RecordLate(const std::vector<Metrics>& step);
  CheckpointDirectory& checkpoints() { return checkpoints_; }

 private:
  RunDirectory(RunLock lock, CheckpointDirectory checkpoints)
      : lock_(std::move(lock)), checkpoints_(std::move(checkpoints)) {}
  Status WriteDescription() const;
  Status OpenMetrics(int64_t step);
  Status StartAgainIfRemade();
  void OpenEvents();
  void RecordEvent(const Metrics& metrics);
  RunLock lock_;
  CheckpointDirectory checkpoints_;
  std::optional<MetricsWriter> metrics_;
  std::optional<EventLog> events_;      // none: they could not be written
  bool has_rounds_ = false;             // training is what lines of rounds say, as in run_history.h
  std::string config_text_, bad_text_;  // bad_text_ empty: no bad images
  int64_t times_remade_ = 0;            // of lock_, when these files were last opened
  int failed_in_a_row_ = 0;
  bool warned_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_
