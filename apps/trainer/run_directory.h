// The folder of a run, and everything that is written there:
//
//   lock                 who writes here (core/run_lock.h)
//   config.textproto     the effective config
//   bad_pictures.csv     pictures that were left out, if any
//   metrics.jsonl        a line per step and evaluation (core/metrics.h)
//   checkpoints/         step-*.safetensors, best.safetensors (core/checkpoint.h)
//   final.safetensors    the trained network (apps/trainer/model_file.h)
//
// Held by one process from Open to destruction. Thread-safety: none. Errors: AlreadyExists if
// another process holds it; what the file system says.
#ifndef RINGTAIL_APPS_TRAINER_RUN_DIRECTORY_H_
#define RINGTAIL_APPS_TRAINER_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "core/checkpoint.h"
#include "core/metrics.h"
#include "core/run_lock.h"
#include "core/status.h"
#include "data/loader.h"

namespace ringtail {

class RunDirectory {
 public:
  static StatusOr<std::unique_ptr<RunDirectory>> Open(const std::string& path);

  const std::string& path() const { return lock_.run_folder(); }
  std::string ConfigPath() const { return path() + "/config.textproto"; }
  std::string BadPicturesPath() const { return path() + "/bad_pictures.csv"; }
  std::string FinalPath() const { return path() + "/final.safetensors"; }
  bool HasCheckpoints() const;

  // Writes what describes the run, and opens the metrics to go on behind `step` (-1: a new run).
  Status Begin(const RunConfig& config, const std::vector<BadPicture>& bad, int64_t step);

  // A metric that cannot be written is a warning, given once: training goes on.
  void Record(const Metrics& metrics);
  // In place of Begin and Record, for who takes the folder over from one that died: of one step, which
  // that one may have written or not.
  void RecordLate(const std::vector<Metrics>& step);
  CheckpointDirectory& checkpoints() { return checkpoints_; }

 private:
  RunDirectory(RunLock lock, CheckpointDirectory checkpoints)
      : lock_(std::move(lock)), checkpoints_(std::move(checkpoints)) {}
  RunLock lock_;
  CheckpointDirectory checkpoints_;
  std::optional<MetricsWriter> metrics_;
  bool warned_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_RUN_DIRECTORY_H_
