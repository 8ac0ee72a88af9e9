#include "core/storage/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/config/nearest_name.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "core/storage/safetensors_header.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 30;
constexpr size_t kMaxElementBytes = 8;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

Status CheckCrc(std::string_view expected_hex, uint32_t actual, std::string_view of_what) {
  if (Crc32cFromHex(expected_hex) == actual) return OkStatus();
  return DataLoss(
      fmt::format("the checksum of {} is {}, but its bytes give {}: the file is damaged, "
                  "or was changed by a program that kept old checksums",
                  of_what, safetensors::Quoted(expected_hex), Crc32cToHex(actual)));
}

}  // namespace

int64_t DtypeBytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
    case Dtype::kI32:
      return 4;
    case Dtype::kI64:
    case Dtype::kF64:
      return 8;
    case Dtype::kF16:
    case Dtype::kBF16:
      return 2;
    case Dtype::kU8:
      return 1;
  }
  return 0;
}

std::string_view DtypeName(Dtype dtype) {
  constexpr std::string_view kNames[] = {"F32", "I32", "I64", "U8", "F64", "F16", "BF16"};
  return kNames[static_cast<int>(dtype)];
}

StatusOr<std::map<std::string, std::string>> ReadSafetensorsMetadata(const std::string& path) {
  RT_ASSIGN_OR_RETURN(const FileDescriptor file, FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK));
  struct stat info = {};
  if (fstat(file.number(), &info) != 0) return ErrnoStatus(errno, "cannot examine '" + path + "'");
  const Status wrong = DataLoss("'" + path + "' does not start like a safetensors file");
  uint64_t length = 0;
  RT_ASSIGN_OR_RETURN(size_t got, file.Read(std::as_writable_bytes(std::span(&length, 1))));
  const auto rest = static_cast<uint64_t>(info.st_size) - std::min<uint64_t>(info.st_size, got);
  if (!S_ISREG(info.st_mode) || got != sizeof(length) || length > rest ||
      length > safetensors::kMaxHeaderBytes) {
    return wrong;
  }
  std::string json(length, '\0');
  RT_ASSIGN_OR_RETURN(got, file.Read(std::as_writable_bytes(std::span(json))));
  if (got != length) return wrong;
  auto header = safetensors::ParseHeader(json, rest - length);
  RT_RETURN_IF_ERROR(header.status().Annotate("'" + path + "'"));
  const auto crc = header->metadata.find(std::string(safetensors::kHeaderCrcName));
  if (crc != header->metadata.end()) {
    const auto digits_at = safetensors::FindHeaderCrcDigits(json);
    if (!digits_at || Crc32cFromHex(crc->second) != safetensors::HeaderCrc(json, *digits_at)) {
      return DataLoss("the header of '" + path + "' is damaged: it does not fit its checksum");
    }
  }
  std::erase_if(header->metadata,
                [](const auto& item) { return safetensors::IsReserved(item.first); });
  return std::move(header->metadata);
}

StatusOr<SafetensorsFile> SafetensorsFile::Read(const std::string& path) {
  RT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadFileBytes(path, kMaxFileBytes));
  return Parse(std::move(bytes), path);
}

StatusOr<SafetensorsFile> SafetensorsFile::Parse(std::vector<std::byte> bytes,
                                                 std::string_view name_for_errors) {
  SafetensorsFile file;
  file.file_name_ = fmt::format("'{}'", name_for_errors);
  file.bytes_ = std::move(bytes);
  try {
    const Status status = file.ParseParts();
    if (!status.ok()) return status.Annotate(file.file_name_);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("not enough memory to read " + file.file_name_);
  }
  return file;
}

Status SafetensorsFile::ParseParts() {
  using safetensors::kLengthBytes;
  uint64_t header_bytes = 0;
  if (bytes_.size() < kLengthBytes) {
    return DataLoss(fmt::format("{} bytes are too few for a safetensors file", bytes_.size()));
  }
  std::memcpy(&header_bytes, bytes_.data(), kLengthBytes);  // little-endian, like our processors
  if (header_bytes > safetensors::kMaxHeaderBytes) {
    return DataLoss(
        fmt::format("the header claims {} bytes, more than the {} allowed; is this a "
                    "safetensors file?",
                    header_bytes, safetensors::kMaxHeaderBytes));
  }
  if (header_bytes > bytes_.size() - kLengthBytes) {
    return DataLoss(
        fmt::format("the header claims {} bytes, but only {} follow: the file is truncated",
                    header_bytes, bytes_.size() - kLengthBytes));
  }
  data_begin_ = kLengthBytes + header_bytes;
  const std::string_view json(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes,
                              header_bytes);
  RT_ASSIGN_OR_RETURN(safetensors::Header header,
                      safetensors::ParseHeader(json, bytes_.size() - data_begin_));
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
  RT_RETURN_IF_ERROR(VerifyChecksums(json));
  std::erase_if(metadata_, [](const auto& item) { return safetensors::IsReserved(item.first); });
  AlignTensors();
  return OkStatus();
}

Status SafetensorsFile::VerifyChecksums(std::string_view header_json) {
  const auto header_crc = metadata_.find(std::string(safetensors::kHeaderCrcName));
  if (header_crc != metadata_.end()) {
    const std::optional<size_t> digits_at = safetensors::FindHeaderCrcDigits(header_json);
    if (!digits_at)
      return DataLoss("the header was rewritten, but kept the checksum of the old one");
    const uint32_t actual = safetensors::HeaderCrc(header_json, *digits_at);
    RT_RETURN_IF_ERROR(CheckCrc(header_crc->second, actual, "the header"));
  }
  const auto data_bytes = metadata_.find(std::string(safetensors::kDataBytesName));
  size_t tensors_proven = 0;
  for (const auto& [name, text] : metadata_) {
    if (!name.starts_with(safetensors::kTensorCrcPrefix)) continue;
    const std::string tensor = name.substr(safetensors::kTensorCrcPrefix.size());
    const auto entry = entries_.find(tensor);
    if (entry == entries_.end()) {
      return DataLoss("there is a checksum for tensor " + safetensors::Quoted(tensor) +
                      ", but no such tensor");
    }
    RT_RETURN_IF_ERROR(
        CheckCrc(text, Crc32c(Data(entry->second)), "tensor " + safetensors::Quoted(tensor)));
    ++tensors_proven;
  }
  const size_t actual_bytes = bytes_.size() - data_begin_;
  if (data_bytes != metadata_.end() && data_bytes->second != std::to_string(actual_bytes)) {
    return DataLoss(fmt::format("data_bytes says {}, but there are {} bytes of data",
                                safetensors::Quoted(data_bytes->second), actual_bytes));
  }
  // Our files have both. Without the header's checksum, the other checks would be disabled.
  if (header_crc == metadata_.end() && data_bytes != metadata_.end()) {
    return DataLoss(
        fmt::format("the header has lost its checksum ('{}'): the file is damaged, or was "
                    "changed by a program that kept old checksums",
                    safetensors::kHeaderCrcName));
  }
  proven_intact_ = header_crc != metadata_.end() && tensors_proven == entries_.size();
  return OkStatus();
}

// Other programs may place a tensor at an unaligned address; then all tensors move to aligned ones.
void SafetensorsFile::AlignTensors() {
  bool aligned = true;
  size_t total = 0;
  for (const auto& [name, entry] : entries_) {
    aligned = aligned && (data_begin_ + entry.begin) % DtypeBytes(entry.dtype) == 0;
    total += RoundUp(entry.end - entry.begin, kMaxElementBytes);
  }
  if (aligned) return;
  std::vector<std::byte> moved(total);
  size_t place = 0;
  for (auto& [name, entry] : entries_) {
    const std::span<const std::byte> data = Data(entry);
    std::copy(data.begin(), data.end(), moved.begin() + static_cast<ptrdiff_t>(place));
    entry.begin = place;
    entry.end = place + data.size();
    place += RoundUp(data.size(), kMaxElementBytes);
  }
  bytes_ = std::move(moved);
  data_begin_ = 0;
}

std::span<const std::byte> SafetensorsFile::Data(const Entry& entry) const {
  return std::span(bytes_).subspan(data_begin_ + entry.begin, entry.end - entry.begin);
}

bool SafetensorsFile::Has(std::string_view name) const {
  return entries_.contains(std::string(name));
}

Status SafetensorsFile::MissingTensor(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [other, entry] : entries_) names.push_back(other);
  const std::string nearest = NearestName(name, names);
  const std::string advice =
      nearest.empty() ? "" : "; did you mean " + safetensors::Quoted(nearest) + "?";
  return NotFound(
      fmt::format("{}: there is no tensor {}{}", file_name_, safetensors::Quoted(name), advice));
}

template <typename T>
StatusOr<std::span<const T>> SafetensorsFile::Elements(std::string_view name, Dtype dtype,
                                                       const Shape& shape) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) {
    return MissingTensor(name);
  }
  const Entry& entry = found->second;
  if (entry.dtype != dtype) {
    return InvalidArgument(fmt::format("{}: tensor {} is {}, but {} is expected", file_name_,
                                       safetensors::Quoted(name), DtypeName(entry.dtype),
                                       DtypeName(dtype)));
  }
  if (!shape.empty() && entry.shape != shape) {
    return InvalidArgument(fmt::format("{}: tensor {} has shape [{}], but [{}] is expected",
                                       file_name_, safetensors::Quoted(name),
                                       ShapeString(entry.shape), ShapeString(shape)));
  }
  const std::span<const std::byte> data = Data(entry);
  return std::span(reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T));
}

StatusOr<std::span<const float>> SafetensorsFile::F32(std::string_view name,
                                                      const Shape& shape) const {
  return Elements<float>(name, Dtype::kF32, shape);
}

StatusOr<std::span<const int32_t>> SafetensorsFile::I32(std::string_view name,
                                                        const Shape& shape) const {
  return Elements<int32_t>(name, Dtype::kI32, shape);
}

}  // namespace ringtail
