// Parts of a checkpoint: what each rank has for itself, in a file of its own beside the checkpoint,
// written by the rank that has it. So no rank needs memory for more than its own.
//
//   checkpoints/step-00000100.rank-0-of-2.5e1f03ba.safetensors    written first, by all ranks at once
//   checkpoints/step-00000100.rank-1-of-2.5e1f03ba.safetensors
//   checkpoints/step-00000100.safetensors                         written last: the commit. It names
//                                                                 its parts, their sizes and checksums
// The tag (5e1f03ba) is drawn anew for every save, so that no file that a checkpoint names is ever
// written again. A checkpoint with parts is whole, or it is refused with the part that is missing
// or damaged; a part that no checkpoint names is left over from a save that did not come to its
// end.
//
// Thread-safety: functions without state; one writer per part. Errors: DataLoss, naming the part.
// Cost: a part is checked in pieces of 1 MiB; reading takes memory for one part.
#ifndef RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_
#define RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

// One part as a whole file: what proves that it is the one that was written.
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

// Of which save a file is a part, going by its name; none for another file.
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

// Whether a part of this size is there.
Status FindPart(const std::string& path, const CheckpointPart& part);
// Whether every byte is as it was written.
Status CheckPart(const std::string& path, const CheckpointPart& part);
StatusOr<SafetensorsFile> ReadPart(const std::string& path, const CheckpointPart& part);
// The same of what came from elsewhere.
StatusOr<SafetensorsFile> ParsePart(std::vector<std::byte> bytes, const std::string& path,
                                    const CheckpointPart& part);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_CHECKPOINT_PARTS_H_
