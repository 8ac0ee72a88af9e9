// The format of a packed file: a whole data set in one file, so that a network file system or a
// cold disk reads it in large pieces instead of opening 25,000 small files. All numbers are
// little-endian.
//
//   byte 0     magic "RTPACK\r\n" (8)  detects text transfers that damage line ends
//        8     version u32 = 1, zero u32
//       16     records: the bytes of image 0, 1, ..., one after the other, no gaps
//      ...     index:
//                classes u32; for each: length u16, name
//                for each record: bytes u32, crc32c u32, label i32, part u8, key length u16, key
//   end-32     footer: index bytes u64, records u64, crc32c of the index u32,
//                crc32c of the first 16 bytes of the file and of the footer so far u32,
//                magic "RTPKEND\n" (8)
//
// The footer is at the end so that the file is written front to back in one pass. The offset of a
// record is the sum of the sizes before it: no index can make records overlap or leave the file,
// and the sum must be the size of the file. Records are sorted by key in natural order, which makes
// keys unique. Every byte is covered by a checksum or has a fixed value, so that any flipped bit is
// found.
// Thread-safety: functions without state.
// Errors: DataLoss, with the reason; the caller adds the file's name.
#ifndef RINGTAIL_DATA_LAYOUTS_PACKED_FORMAT_H_
#define RINGTAIL_DATA_LAYOUTS_PACKED_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

constexpr int64_t kPackedHeaderBytes = 16;
constexpr int64_t kPackedFooterBytes = 32;
constexpr int64_t kMaxPackedIndexBytes = int64_t{1} << 30;  // some 20 million images
constexpr uint32_t kMaxPackedClasses = 10000;

struct PackedRecord {
  int64_t offset = 0;  // not stored: the sum of the sizes before it
  uint32_t bytes = 0;
  uint32_t crc32c = 0;
};

struct PackedIndex {
  std::vector<std::string> class_names;
  std::vector<Sample> samples;
  std::vector<PackedRecord> records;  // by sample
};

struct PackedFooter {
  uint64_t index_bytes = 0;
  uint64_t num_records = 0;
  uint32_t index_crc32c = 0;
};

using PackedHeaderBytes = std::array<std::byte, kPackedHeaderBytes>;
using PackedFooterBytes = std::array<std::byte, kPackedFooterBytes>;

PackedHeaderBytes EncodePackedHeader();
bool HasPackedMagic(std::span<const std::byte> start_of_file);

// InvalidArgument if a name is too long or there are too many classes.
StatusOr<std::vector<std::byte>> EncodePackedIndex(const PackedIndex& index);
PackedFooterBytes EncodePackedFooter(const PackedFooter& footer);

StatusOr<PackedFooter> DecodePackedFooter(const PackedHeaderBytes& header,
                                          const PackedFooterBytes& footer);
// `records_end`: offset of the index in the file.
StatusOr<PackedIndex> DecodePackedIndex(const PackedFooter& footer,
                                        std::span<const std::byte> bytes, int64_t records_end);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_PACKED_FORMAT_H_
