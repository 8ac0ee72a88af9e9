// A ZIP archive whose members are stored, not compressed, as PyTorch writes them.
//
//   | local header, name, extra | data | ... | central directory: name, place, size | end record |
//
// A hostile archive never causes an access out of bounds, nor an allocation of a claimed size:
// every number is compared with the bytes that are there, and members are views of them. Checksums
// are not verified, as PyTorch does not, which may write none. ZIP64 records are read. Errors:
// DataLoss with the reason, without the file's name. Thread-safety: const after Parse. Cost:
// O(members). Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification" 6.3.10, section 4.3.
#ifndef RINGTAIL_CORE_STORAGE_WEIGHTS_ZIP_ARCHIVE_H_
#define RINGTAIL_CORE_STORAGE_WEIGHTS_ZIP_ARCHIVE_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/status.h"

namespace ringtail {

using ZipMembers = std::map<std::string, std::span<const std::byte>>;

inline constexpr size_t kMaxZipMembers = 100000;
bool LooksLikeZip(std::span<const std::byte> bytes);
// Views into `bytes`, by name.
StatusOr<ZipMembers> ParseZip(std::span<const std::byte> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_WEIGHTS_ZIP_ARCHIVE_H_
