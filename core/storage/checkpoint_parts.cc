#include "core/storage/checkpoint_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "core/check.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr std::string_view kStep = "step-", kRank = ".rank-", kOf = "-of-";
constexpr std::string_view kPartSuffix = ".safetensors";
constexpr size_t kPieceBytes = size_t{1} << 20;

// Removes a number from the front of `text`.
template <typename Number>
bool TakeNumber(std::string_view* text, Number* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || *number < 0) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool TakeText(std::string_view* text, std::string_view expected) {
  if (!text->starts_with(expected)) return false;
  text->remove_prefix(expected.size());
  return true;
}

Status Damaged(const std::string& path, const CheckpointPart& wanted, const CheckpointPart& has) {
  return DataLoss(
      fmt::format("the part '{}' of the checkpoint is damaged: {} bytes with checksum {} "
                  "were written, {} bytes with {} are there",
                  path, wanted.bytes, Crc32cToHex(wanted.crc), has.bytes, Crc32cToHex(has.crc)));
}

Status CannotRead(const std::string& path, const Status& status) {
  if (status.code() != StatusCode::kNotFound) return status;
  return DataLoss(fmt::format("the part '{}' of the checkpoint is missing", path));
}

}  // namespace

std::string DrawPartTag() {
  uint32_t drawn = 0;
  const bool filled = getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn);
  RT_CHECK(filled, "the kernel gives random numbers");
  return Crc32cToHex(drawn);
}

std::string PartName(int64_t step, int rank, int world, const std::string& tag) {
  return fmt::format("{}{:08}{}{}{}{}.{}{}", kStep, step, kRank, rank, kOf, world, tag,
                     kPartSuffix);
}

std::optional<PartOf> ParsePartName(std::string_view name) {
  PartOf part;
  int rank = 0, world = 0;
  std::string_view rest = name;
  if (!TakeText(&rest, kStep) || !TakeNumber(&rest, &part.step) || !TakeText(&rest, kRank) ||
      !TakeNumber(&rest, &rank) || !TakeText(&rest, kOf) || !TakeNumber(&rest, &world) ||
      !TakeText(&rest, ".") || !rest.ends_with(kPartSuffix)) {
    return std::nullopt;
  }
  part.tag = rest.substr(0, rest.size() - kPartSuffix.size());
  // Only names in our own spelling.
  if (!Crc32cFromHex(part.tag) || PartName(part.step, rank, world, part.tag) != name) {
    return std::nullopt;
  }
  return part;
}

CheckpointPart SummaryOf(const SafetensorsImage& image) {
  CheckpointPart part;
  for (const std::span<const std::byte> piece : image.Pieces()) {
    part.bytes += static_cast<int64_t>(piece.size());
    part.crc = Crc32c(piece, part.crc);
  }
  return part;
}

std::string PartsText(const CheckpointParts& parts) {
  std::string text = parts.tag;
  for (const CheckpointPart& part : parts.ranks) {
    text += fmt::format(" {}:{}", part.bytes, Crc32cToHex(part.crc));
  }
  return text;
}

StatusOr<CheckpointParts> ParsePartsText(std::string_view text) {
  constexpr size_t kDigits = 8;
  const Status wrong = DataLoss(fmt::format("'{}' is no list of parts", text.substr(0, 100)));
  CheckpointParts parts{.tag = std::string(text.substr(0, kDigits)), .ranks = {}};
  if (!Crc32cFromHex(parts.tag)) return wrong;
  for (std::string_view rest = text.substr(kDigits); !rest.empty();) {
    CheckpointPart part;
    if (!TakeText(&rest, " ") || !TakeNumber(&rest, &part.bytes) || !TakeText(&rest, ":")) {
      return wrong;
    }
    const auto crc = Crc32cFromHex(rest.substr(0, kDigits));
    if (!crc) return wrong;
    part.crc = *crc;
    rest.remove_prefix(kDigits);
    parts.ranks.push_back(part);
  }
  if (parts.ranks.empty()) return wrong;
  return parts;
}

Status FindPart(const std::string& path, const CheckpointPart& part) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return CannotRead(path, ErrnoStatus(errno, "cannot examine '" + path + "'"));
  }
  if (S_ISREG(info.st_mode) && info.st_size == part.bytes) return OkStatus();
  return DataLoss(fmt::format("the part '{}' of the checkpoint has {} bytes and not {}", path,
                              info.st_size, part.bytes));
}

Status CheckPart(const std::string& path, const CheckpointPart& part,
                 const std::function<void()>& on_piece) {
  const auto file = FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return CannotRead(path, file.status());
  std::vector<std::byte> piece(kPieceBytes);
  CheckpointPart has;
  while (has.bytes <= part.bytes) {
    RT_ASSIGN_OR_RETURN(const size_t got, file->Read(piece));
    has.bytes += static_cast<int64_t>(got);
    has.crc = Crc32c(std::span(piece).first(got), has.crc);
    if (on_piece) on_piece();
    if (got < piece.size()) break;
  }
  return has == part ? OkStatus() : Damaged(path, part, has);
}

StatusOr<SafetensorsFile> ReadPart(const std::string& path, const CheckpointPart& part) {
  auto bytes = ReadFileBytes(path, part.bytes);
  if (!bytes.ok()) return CannotRead(path, bytes.status());
  return ParsePart(*std::move(bytes), path, part);
}

StatusOr<SafetensorsFile> ParsePart(std::vector<std::byte> bytes, const std::string& path,
                                    const CheckpointPart& part) {
  const CheckpointPart has{static_cast<int64_t>(bytes.size()), Crc32c(bytes)};
  if (has != part) return Damaged(path, part, has);
  return SafetensorsFile::Parse(std::move(bytes), path);
}

}  // namespace ringtail
