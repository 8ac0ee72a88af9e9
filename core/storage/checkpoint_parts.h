// Parts of a checkpoint: the state that each rank has for itself, in a file of its own beside the
// checkpoint, written by that rank. So no rank needs memory for more than its own part.
//
//   checkpoints/step-00000100.rank-0-of-2.5e1f03ba.safetensors   written first, by all ranks
//   checkpoints/step-00000100.rank-1-of-2.5e1f03ba.safetensors
//   checkpoints/step-00000100.safetensors                        written last: the commit; names the
//                                                                parts, their sizes and checksums
// The tag (5e1f03ba) is drawn for every save, so that a file that a checkpoint names is never
// written again. A checkpoint whose parts are missing or damaged is refused with the name of the
// part; a part that no checkpoint names belongs to an interrupted save.
//
// Thread-safety: functions without state; one writer per part. Errors: DataLoss, naming the part.
// Cost: a part is checked in pieces of 1 MiB; reading takes memory for one part.
#ifndef RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_
#define RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

// Proof that a part file is the one that was written.
struct CheckpointPart {
  int64_t bytes = 0;
  uint32_t crc = 0;
  bool operator==(const CheckpointPart&) const = default;
};

struct CheckpointParts {
  std::string tag;
  std::vector<CheckpointPart> ranks;  // by rank
  int world() const { return static_cast<int>(ranks.size()); }
  bool operator==(const CheckpointParts&) const = default;
};

std::string DrawPartTag();
// "step-00000100.rank-1-of-2.5e1f03ba.safetensors"
std::string PartName(int64_t step, int rank, int world, const std::string& tag);

// The save that a part belongs to, according to its file name; nullopt for other files.
struct PartOf {
  int64_t step = 0;
  std::string tag;
  auto operator<=>(const PartOf&) const = default;  // NOLINT(modernize-use-nullptr): no pointer
};
std::optional<PartOf> ParsePartName(std::string_view name);

CheckpointPart SummaryOf(const SafetensorsImage& image);

// For the metadata of the checkpoint: "5e1f03ba 123456:7dc89b7a 123456:01020304".
std::string PartsText(const CheckpointParts& parts);
StatusOr<CheckpointParts> ParsePartsText(std::string_view text);

// Checks that a part of this size exists.
Status FindPart(const std::string& path, const CheckpointPart& part);
// Checks every byte; calls `on_piece` after each MiB, for those who watch whether the reader moves.
Status CheckPart(const std::string& path, const CheckpointPart& part,
                 const std::function<void()>& on_piece = {});
StatusOr<SafetensorsFile> ReadPart(const std::string& path, const CheckpointPart& part);
// The same for bytes from elsewhere; `path` is for messages.
StatusOr<SafetensorsFile> ParsePart(std::vector<std::byte> bytes, const std::string& path,
                                    const CheckpointPart& part);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_
