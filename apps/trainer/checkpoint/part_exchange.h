// PartExchange: writes and reads the parts of checkpoints (core/storage/checkpoint_parts.h). Every
// rank that sees the folder of the run handles its own part, all ranks at once; rank 0 does it for
// the others, in pieces, so that it never needs memory for another rank's state.
//
//   rank 0  writes part 0           <- pieces of part 2, written as they arrive
//   rank 1  writes part 1, fsync
//   rank 2  sees no such folder     -> pieces of kPieceBytes
//   all     "my part is written: so many bytes, this checksum", or why not
//
// Each save finds out which ranks see the folder: rank 0 writes a file with a random name, and the
// others look for it under the same absolute path. Each opens the folder first and writes through
// what it has opened (core/storage/held_folder.h): if another folder has taken the name of this
// run's since, that file is not in it, and no part is written there.
// Thread-safety: the trainer thread. Memory: one piece; on reading, a rank's own part.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_PART_EXCHANGE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_PART_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "core/storage/held_folder.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

// The result of a save; neither an error nor parts if no rank has a part.
struct WrittenParts {
  Status status;                         // the first error of any rank; the world continues
  std::optional<CheckpointParts> parts;  // the same on all ranks
};

// Whether this rank sees a file of rank 0's; tests replace it.
using SeesFile = std::function<bool(const std::string& path)>;
bool FileIsThere(const std::string& path);

class PartExchange {
 public:
  static constexpr int64_t kPieceBytes = int64_t{256} << 10;

  // All ranks. Rank 0's `directory` counts; if that is null, so is the exchange.
  static StatusOr<std::unique_ptr<PartExchange>> Create(TrainingWorld* world,
                                                        const CheckpointDirectory* directory,
                                                        const SeesFile& sees = FileIsThere);
  // The ranks that did not see the folder at the last attempt.
  const std::vector<int>& blind() const { return blind_; }

  // All ranks, each with its own tensors, into rank 0's `directory`. Nothing is written if that is
  // null, the folder of the run is lost, or a tensor of any rank has a NaN or infinity, with which
  // no run continues. An error only if the world is lost.
  StatusOr<WrittenParts> Write(int64_t step, std::span<const TensorView> own,
                               const CheckpointDirectory* directory);

 private:
  PartExchange(TrainingWorld* world, SeesFile sees) : world_(world), sees_(std::move(sees)) {}
  // Rank 0's folder as this rank reaches it.
  struct Place {
    Status status;                     // the same on all ranks: why there is none
    std::string tag;                   // drawn for this save
    std::optional<HeldFolder> folder;  // empty on ranks that do not see it
  };
  StatusOr<Place> FindPlace(const CheckpointDirectory* directory);
  // From rank `from` to rank 0's disk; rank 0 sets `written`.
  Status Relay(int from, const SafetensorsImage& own, int64_t bytes, const std::string& path,
               Status* written);

  TrainingWorld* const world_;
  const SeesFile sees_;
  std::vector<int> blind_;
};

// In bytes, without headers.
int64_t BytesOf(std::span<const TensorView> tensors);
// On rank 0: which ranks do not see `directory`, and what `bytes` of each cost it.
void WarnOfBlindRanks(const PartExchange& parts, const TrainingWorld& world,
                      const CheckpointDirectory* directory, int64_t bytes);

// The parts of a checkpoint that is to be read; empty: it has none, or another rank reads it.
struct SavedParts {
  int64_t step = 0;
  std::string folder;  // absolute
  CheckpointParts parts;
  bool empty() const { return parts.ranks.empty(); }
};
SavedParts PartsOf(const Checkpoint& checkpoint);

// All ranks; the `saved` of `source_rank` counts. Calls `take` on a rank with each part that it
// needs, one after the other. DataLoss, naming the part, if one is not what was written.
struct PartReader {
  // Whether rank `reader` of this world has to have the part of old rank `from`.
  std::function<bool(int reader, int from, int saved_world)> needs;
  std::function<Status(const SafetensorsFile& part, int from, int saved_world)> take;
};
Status ReadParts(TrainingWorld* world, const SavedParts& saved, int source_rank,
                 const PartReader& reader, const SeesFile& sees = FileIsThere);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_PART_EXCHANGE_H_
