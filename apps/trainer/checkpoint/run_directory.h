// The folder of a run, and everything that is written there:
//
//   lock                 who writes here (core/storage/run_lock.h)
//   config.textproto     the effective config
//   bad_images.csv     images that were left out, if any
//   metrics.jsonl        a line per step and evaluation (core/storage/metrics.h)
//   checkpoints/         step-*.safetensors, best.safetensors (core/storage/checkpoint.h)
//   final.safetensors    the trained network (apps/trainer/checkpoint/model_file.h)
//
// Held by one process from Open to destruction, and followed where it goes: a folder that somebody
// renames or deletes meanwhile never gets the next run of its name into trouble (core/storage/run_lock.h).
// Thread-safety: none. Errors: AlreadyExists if another process holds it; what the file system says.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
  // Where it is now, for those who are about to write there (RunLock::Folder).
  StatusOr<std::string> Folder() const { return lock_.Folder(); }
  bool HasCheckpoints() const;

  // Writes what describes the run, and opens the metrics to go on behind `step` (-1: a new run).
  Status Begin(const RunConfig& config, const std::vector<BadImage>& bad, int64_t step);

  // Says loudly if a checkpoint of files of so many bytes does not fit, before hours go by; training
  // goes on.
  void CheckRoom(std::span<const int64_t> files) const;

  // What became of a checkpoint. After kLoudAfter failures one behind the other they are errors and
  // say what a crash would lose. `newest`: the step of the newest one on disk; -1: none.
  static constexpr int kLoudAfter = 3;
  void CheckpointSaved() { failed_in_a_row_ = 0; }
  void CheckpointFailed(int64_t step, int64_t newest, const Status& why);

  // A metric that cannot be written is a warning, given once: training goes on.
  void Record(const Metrics& metrics);
  // In place of Begin and Record, for who takes the folder over from one that died: of one step,
  // which that one may have written or not.
  void RecordLate(const std::vector<Metrics>& step);
  CheckpointDirectory& checkpoints() { return checkpoints_; }

 private:
  RunDirectory(RunLock lock, CheckpointDirectory checkpoints)
      : lock_(std::move(lock)), checkpoints_(std::move(checkpoints)) {}
  Status WriteDescription() const;
  Status StartAgainIfRemade();
  RunLock lock_;
  CheckpointDirectory checkpoints_;
  std::optional<MetricsWriter> metrics_;
  std::string config_text_, bad_text_;  // bad_text_ empty: no bad images
  int64_t times_remade_ = 0;            // of lock_, as far as these files know
  int failed_in_a_row_ = 0;
  bool warned_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_RUN_DIRECTORY_H_
