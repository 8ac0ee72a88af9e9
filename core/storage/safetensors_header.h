// The JSON header of a safetensors file: read strictly, and the names that Ringtail reserves in it.
// Private to core/storage/safetensors*.cc. Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_STORAGE_SAFETENSORS_HEADER_H_
#define RINGTAIL_CORE_STORAGE_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/storage/safetensors.h"

namespace ringtail::safetensors {

inline constexpr size_t kLengthBytes = 8;  // of the number in front of the header
inline constexpr size_t kMaxHeaderBytes = size_t{16} << 20;
inline constexpr size_t kMaxDimensions = 8;
inline constexpr size_t kMaxNameBytes = 1024;

inline constexpr std::string_view kMetadataName = "__metadata__";
inline constexpr std::string_view kTensorCrcPrefix = "crc32c.";
inline constexpr std::string_view kHeaderCrcName = "header_crc32c";
inline constexpr std::string_view kDataBytesName = "data_bytes";
bool IsReserved(std::string_view metadata_name);

struct Header {
  std::map<std::string, SafetensorsFile::Entry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads and checks `json` against the size of the data behind it: every tensor's range agrees with
// its dtype and shape, and the ranges cover the data once. The error (DataLoss) does not name the
// file.
StatusOr<Header> ParseHeader(std::string_view json, size_t data_bytes);

// A name as it may be printed: quoted, control characters escaped, long ones cut.
std::string Quoted(std::string_view name);

// Where in the header's JSON the digits of "header_crc32c" stand,
// if they do as Ringtail writes them.
std::optional<size_t> FindHeaderCrcDigits(std::string_view json);

// The checksum of the length and the header with the digits at `digits_at` taken as zeros.
uint32_t HeaderCrc(std::string_view json, size_t digits_at);

}  // namespace ringtail::safetensors

#endif  // RINGTAIL_CORE_STORAGE_SAFETENSORS_HEADER_H_
