// The first directory of a TIFF structure, which TIFF files and EXIF blocks share:
//
//   "II" or "MM" (byte order)  42  offset of the directory
//   directory: number of entries, then for each: tag (2 bytes), type (2), count (4), values (4), or their
//   offset, if they do not fit into 4 bytes
//
// Trusts no offset and no count; allocates nothing. Thread-safety: const functions.
// Cost: Find reads the entries up to the one it finds. Source: TIFF revision 6.0 (1992), section 2.
#ifndef RINGTAIL_DATA_DECODING_TIFF_DIRECTORY_H_
#define RINGTAIL_DATA_DECODING_TIFF_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/decoding/byte_reader.h"

namespace ringtail {

enum class TiffType : uint32_t { kByte = 1, kShort = 3, kLong = 4 };  // of 1, 2 and 4 bytes

struct TiffEntry {
  uint32_t type = 0, count = 0;
  size_t field = 0;  // where its 4 bytes are
};

class TiffDirectory {
 public:
  // `tiff` must outlive it. nullopt if it has another beginning, or no directory.
  static std::optional<TiffDirectory> First(std::span<const std::byte> tiff);

  // The first entry with this tag; nullopt if there is none, or if the entries end before it.
  std::optional<TiffEntry> Find(uint32_t tag) const;
  // Number `index` of an entry; nullopt if there are fewer, of another type (TiffType), or beyond
  // the end.
  std::optional<uint32_t> Value(const TiffEntry& entry, uint32_t index = 0) const;

  ByteOrder order() const { return order_; }

 private:
  TiffDirectory(std::span<const std::byte> tiff, ByteOrder order, size_t begin, uint32_t entries)
      : tiff_(tiff), order_(order), begin_(begin), entries_(entries) {}

  std::span<const std::byte> tiff_;
  ByteOrder order_;
  size_t begin_;  // of the first entry
  uint32_t entries_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_TIFF_DIRECTORY_H_
