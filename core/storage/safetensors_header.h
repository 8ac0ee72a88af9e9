// Strict parsing of the JSON header of a safetensors file, and the names that Ringtail reserves in
// it. Private to core/storage/safetensors*.cc. Thread-safety: functions without state.
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

inline constexpr size_t kLengthBytes = 8;  // of the header's length, in front of it
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

// Parses `json` and checks it against the size of the data after it: every tensor's range agrees
// with its dtype and shape, and the ranges cover the data exactly once. DataLoss, without the
// file's name.
StatusOr<Header> ParseHeader(std::string_view json, size_t data_bytes);

// A name for messages: quoted, control characters escaped, long names cut.
std::string Quoted(std::string_view name);

// Offset of the digits of "header_crc32c" in the header's JSON, if they are there in our spelling.
std::optional<size_t> FindHeaderCrcDigits(std::string_view json);

// The checksum of the length and the header, with zeros for the digits at `digits_at`.
uint32_t HeaderCrc(std::string_view json, size_t digits_at);

}  // namespace ringtail::safetensors

#endif  // RINGTAIL_CORE_STORAGE_SAFETENSORS_HEADER_H_
