// Checkpoints: what a training run saves, and how it finds it again after a crash at any instant.
//
//   <run>/lock                                    who writes here (core/storage/run_lock.h)
//   <run>/checkpoints/step-00001234.safetensors   the newest `keep`, complete or absent, never torn
//   <run>/checkpoints/step-00001234.rank-0-of-4.*  parts of it, if ranks have something of their own
//                                                 (core/storage/checkpoint_parts.h); with it they go
//   <run>/checkpoints/best.safetensors            another name of the best of them; outlives it
//   <run>/checkpoints/failed-check                since the last agreed one the ranks have differed
//
// What is in a checkpoint is the trainer's business: tensors by name and strings by name. This file
// adds the step, and with it an order. Weights, momenta and running statistics are tensors; the
// config, the epoch and the best accuracy are strings. With random numbers that are a pure function
// of (seed, step), that is the whole state of a run.
//
// Save: new file durable first (core/storage/file.h), only then are old ones deleted; so there is a valid
// checkpoint at every instant after the first. Load: the newest file whose every bit is proven by
// its checksums (core/storage/safetensors.h), else the one before, with a warning that says why.
//
// Agreement: a checkpoint says how many ranks held what it holds, bit for bit, just before it was
// written (`agreed_ranks`; 1: one process); 0: it was written after ranks were lost, when nobody
// was left to compare with. Where a comparison has failed since the last agreed checkpoint, one
// that says 0 may hold what was wrong: LoadNewest leaves it out. Older checkpoints say nothing and
// are taken.
//
// Thread-safety: none. Errors: a failed Save leaves all earlier checkpoints as they were; DataLoss
// for a file that is not what was written.
// Cost: one write and fsync of the tensors, no copy of them.
#ifndef RINGTAIL_CORE_STORAGE_CHECKPOINT_H_
#define RINGTAIL_CORE_STORAGE_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/storage/checkpoint_parts.h"
#include "core/storage/run_lock.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

inline constexpr char kCheckpointFolder[] = "checkpoints";  // in the run's folder
inline constexpr char kAgreedRanksKey[] = "agreed_ranks";   // in the metadata

// A checkpoint that was read and proven intact.
struct Checkpoint {
  int64_t step = 0;
  std::string path;
  SafetensorsFile file;  // tensors; metadata() is what Save was given, and "step"
  std::optional<CheckpointParts> parts = {};
  std::string PartPath(int rank) const;  // beside `path`

  // What it says under kAgreedRanksKey; -1: nothing.
  int64_t agreed_ranks() const;
};

// Who goes on from a checkpoint has its parts proven, too: each is read once, in small pieces.
enum class CheckParts { kYes, kNo };

// Reads one checkpoint. DataLoss if it or one of its parts is damaged, InvalidArgument if it is no
// checkpoint of ours.
StatusOr<Checkpoint> LoadCheckpoint(const std::string& path, CheckParts parts = CheckParts::kYes);

// The newest intact checkpoint of a run; needs no lock. Each newer one that was refused is logged
// as a warning. NotFound if the run has none at all, DataLoss (with the reasons) if none is intact.
StatusOr<Checkpoint> LoadNewestCheckpoint(const std::string& run_folder,
                                          CheckParts parts = CheckParts::kYes);

// Where the best checkpoint of a run is, if there is one.
std::string BestCheckpointPath(const std::string& run_folder);

// The writing side: one per run, and only for the one who holds the run's lock.
class CheckpointDirectory {
 public:
  static constexpr int kDefaultKeep = 2;  // so that a disk error in the newest does not end the run

  // Makes <run>/checkpoints and removes temporary files that dead writers left there and in <run>.
  // Holds `lock`, too, and follows the folder where it goes (RunLock::Folder). From here on, a write beyond the limit for file
  // sizes (ulimit -f) is an error instead of the end of the process.
  static StatusOr<CheckpointDirectory> Open(const RunLock& lock);

  // Once this returns OK, the checkpoint survives a power cut. Makes <run>/checkpoints again, if
  // somebody has deleted it. Then deletes all but the `keep` >= 1
  // newest, and those of later steps, which a run that was resumed further back has left behind.
  // `metadata` must not use the names that safetensors.h reserves, nor "step" and "parts". `parts`:
  // which the ranks have written into folder(); if one is not there, DataLoss. On an error they are
  // deleted.
  Status Save(int64_t step, std::span<const TensorView> tensors,
              const std::map<std::string, std::string>& metadata, int keep = kDefaultKeep,
              const CheckpointParts* parts = nullptr);

  // Deletes parts that no checkpoint names: of old ones, and of saves that did not come to their
  // end. Not while ranks write.
  void DeleteOrphanParts() const;

  // The ranks hold different states, as `sentence` says. Durable; until Save writes a checkpoint
  // that has at least one in kAgreedRanksKey.
  Status MarkFailedCheck(const std::string& sentence);

  // Makes the saved checkpoint of `step` the best one. The caller has made sure that it is finite.
  Status SaveBest(int64_t step);

  StatusOr<std::vector<int64_t>> Steps() const;  // saved steps, ascending
  std::string Path(int64_t step) const;
  std::string folder() const;
  // The same for ranks that are about to write parts there: where it is now, made again if somebody
  // has deleted it. Errors: RunLock::Folder.
  StatusOr<std::string> FolderNow() const;
  // That folder, open: what is written through it is in this run's, wherever that goes meanwhile.
  StatusOr<HeldFolder> Hold() const;

 private:
  explicit CheckpointDirectory(RunLock lock) : lock_(std::move(lock)) {}
  Status Write(int64_t step, std::span<const TensorView> tensors,
               const std::map<std::string, std::string>& metadata, const CheckpointParts* parts);
  void DeleteOthers(int64_t newest, int keep) const;
  void ClearFailedCheck() const;
  RunLock lock_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_CHECKPOINT_H_
