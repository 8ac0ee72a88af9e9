// Checkpoints: what a training run saves, and how it finds it after a crash at any instant.
//
//   <run>/lock                                    the writing process (core/storage/run_lock.h)
//   <run>/checkpoints/step-00001234.safetensors   the newest `keep`, whole or absent, never torn;
//                                                 and the newest agreed one, if none of them is
//   <run>/checkpoints/step-00001234.rank-0-of-4.*  parts of it, if ranks have state of their own
//                                                 (checkpoint_parts.h); deleted with it
//   <run>/checkpoints/best.safetensors            a second name of the best of them; outlives it
//   <run>/checkpoints/failed-check                ranks have differed since the last agreed one
//
// The trainer decides what a checkpoint contains: tensors by name and strings by name. This class
// adds the step, and with it an order. Weights, momenta and running statistics are tensors; the
// config, the epoch and the best accuracy are strings. As random numbers are a pure function of
// (seed, step), that is the whole state of a run.
//
// Save: makes the new file durable (core/storage/file.h) before it deletes old ones, so that a
// valid checkpoint exists at every instant after the first. Load: the newest file whose every bit
// is proven by its checksums (core/storage/safetensors.h), else the previous one, with a warning
// that says why.
//
// Agreement: `agreed_ranks` is the number of ranks that held the same bits just before the
// checkpoint was written (1: one process; 0: it was written after ranks were lost, without a
// comparison). If a comparison has failed since the last agreed checkpoint, one with 0 may hold
// wrong values: LoadNewestCheckpoint skips it. So the newest that it would not skip stays on the
// disk, however many are written after losses, and those that it skips are deleted before they
// would count again. Checkpoints of older versions without the number are loaded.
//
// Thread-safety: none. Errors: a failed Save leaves all earlier checkpoints as they were; DataLoss
// for a file that differs from what was written.
// Cost: one write and fsync of the tensors, no copy of them.
#ifndef RINGTAIL_CORE_STORAGE_CHECKPOINT_H_
#define RINGTAIL_CORE_STORAGE_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
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
  SafetensorsFile file;  // tensors; metadata(): that of Save, and "step"
  std::optional<CheckpointParts> parts = {};
  std::string PartPath(int rank) const;  // beside `path`

  // The value of kAgreedRanksKey; -1 without it.
  int64_t agreed_ranks() const;
};

// What a checkpoint says of itself, proven by the header's checksum. Its tensors and parts may be
// damaged; they are not read, so that this takes milliseconds whatever their size.
struct CheckpointHead {
  int64_t step = 0;
  std::string path;
  std::map<std::string, std::string> metadata;
  int64_t agreed_ranks() const;  // as Checkpoint's
};

// Errors: as LoadCheckpoint's.
StatusOr<CheckpointHead> ReadCheckpointHead(const std::string& path);

// The newest of a run whose head is intact; logs nothing. Errors: as LoadNewestCheckpoint's.
StatusOr<CheckpointHead> FindNewestCheckpoint(const std::string& run_folder);

// kYes, for resuming: verifies the parts, too; each is read once, in small pieces.
enum class CheckParts { kYes, kNo };

// Reads one checkpoint. DataLoss if it or one of its parts is damaged, InvalidArgument if it is not
// a checkpoint of Ringtail. `on_piece`: as CheckPart's; parts of many ranks take minutes.
StatusOr<Checkpoint> LoadCheckpoint(const std::string& path, CheckParts parts = CheckParts::kYes,
                                    const std::function<void()>& on_piece = {});

// The newest intact checkpoint of a run; needs no lock. Logs a warning for each newer one
// that it refused. NotFound if the run has no checkpoint, DataLoss (with the reasons) if none is
// intact.
StatusOr<Checkpoint> LoadNewestCheckpoint(const std::string& run_folder,
                                          CheckParts parts = CheckParts::kYes,
                                          const std::function<void()>& on_piece = {});

// The path of a run's best checkpoint, if there is one.
std::string BestCheckpointPath(const std::string& run_folder);

// The writing side: one per run, for the process that holds the run's lock.
class CheckpointDirectory {
 public:
  static constexpr int kDefaultKeep = 2;  // a disk error in the newest must not end the run

  // Creates <run>/checkpoints and removes temporary files that killed writers left there and in
  // <run>. Keeps a copy of `lock` and follows the folder when it is renamed (RunLock::Folder). From
  // here on, a write beyond the limit for file sizes (ulimit -f) is an error and does not end the
  // process.
  static StatusOr<CheckpointDirectory> Open(const RunLock& lock);

  // Once this returns OK, the checkpoint survives a power cut. Creates <run>/checkpoints again if
  // it was deleted. Then deletes all but the `keep` >= 1 newest checkpoints, and those of later
  // steps, which remain when a run is resumed from an earlier step. If those all have 0 under
  // kAgreedRanksKey, the newest that has not is kept, too; if this one has not, and a check has
  // failed, none with 0 is kept. `metadata` must not use the names that safetensors.h reserves, nor
  // "step" and "parts". `parts`: those that the ranks have written into folder(); DataLoss if one
  // is missing. On an error they are deleted.
  Status Save(int64_t step, std::span<const TensorView> tensors,
              const std::map<std::string, std::string>& metadata, int keep = kDefaultKeep,
              const CheckpointParts* parts = nullptr);

  // Deletes parts that no checkpoint names: those of deleted checkpoints and of interrupted saves.
  // Do not call it while ranks write parts.
  void DeleteOrphanParts() const;

  // Records durably that the ranks hold different states; `sentence` is stored. Holds until Save
  // has written a checkpoint with at least 1 under kAgreedRanksKey and has deleted those of later
  // steps.
  Status MarkFailedCheck(const std::string& sentence);

  // Makes the saved checkpoint of `step` the best one. The caller has checked that it is finite.
  Status SaveBest(int64_t step);

  StatusOr<std::vector<int64_t>> Steps() const;  // saved steps, ascending
  std::string Path(int64_t step) const;
  std::string folder() const;
  // The current path of folder(), for ranks that are about to write parts there; created again if
  // it was deleted. Errors: those of RunLock::Folder.
  StatusOr<std::string> FolderNow() const;
  // That folder, open: files written through it end up in it, even if it is renamed meanwhile.
  StatusOr<HeldFolder> Hold() const;

 private:
  explicit CheckpointDirectory(RunLock lock) : lock_(std::move(lock)) {}
  Status Write(int64_t step, std::span<const TensorView> tensors,
               const std::map<std::string, std::string>& metadata, const CheckpointParts* parts);
  std::set<int64_t> StepsToKeep(std::span<const int64_t> steps, int64_t newest, bool agreed,
                                int keep) const;
  bool DeleteOthers(int64_t newest, bool agreed, int keep) const;
  void ClearFailedCheck() const;
  RunLock lock_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_CHECKPOINT_H_
