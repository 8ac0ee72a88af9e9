#include "data/layouts/packed_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/storage/crc32c.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

constexpr std::string_view kMagic = "RTPACK\r\n";
constexpr std::string_view kEndMagic = "RTPKEND\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kMaxNameBytes = std::numeric_limits<uint16_t>::max();
constexpr size_t kSmallestEntryBytes = 4 + 4 + 4 + 1 + 2 + 1;  // with a key of one byte

// Appends little-endian numbers and strings.
class Encoder {
 public:
  template <typename T>
  void Number(T value) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(bits) >> (8 * i)));
    }
  }
  void Text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void ShortString(std::string_view text) {
    Number(static_cast<uint16_t>(text.size()));
    Text(text);
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads them back. Beyond the end everything is zero or empty, and ok() is false.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    uint64_t bits = 0;
    const auto bytes = Take(sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i)
      bits |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    return static_cast<T>(bits);
  }
  std::string_view Text(size_t length) {
    const auto bytes = Take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string ShortString() { return std::string(Text(Number<uint16_t>())); }

  bool ok() const { return ok_; }
  size_t remaining() const { return rest_.size(); }

 private:
  std::span<const std::byte> Take(size_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return {};
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

bool IsUsableName(std::string_view name) { return !name.empty() && IsPrintable(name); }

// Checksum of the header and of the footer up to this checksum.
uint32_t FrameCrc(const PackedHeaderBytes& header, std::span<const std::byte> footer) {
  return Crc32c(footer, Crc32c(header));
}

Status DecodeClassNames(Decoder* decoder, PackedIndex* index) {
  const auto count = decoder->Number<uint32_t>();
  if (count > kMaxPackedClasses) return DataLoss(fmt::format("the index claims {} classes", count));
  for (uint32_t i = 0; i < count; ++i) {
    index->class_names.push_back(decoder->ShortString());
    if (!decoder->ok() || !IsUsableName(index->class_names.back())) {
      return DataLoss(fmt::format("the name of class {} is damaged", i));
    }
  }
  return OkStatus();
}

// Reads the next record from `decoder`; `offset`: its place in the file.
Status DecodeRecord(Decoder* decoder, int64_t offset, PackedIndex* index) {
  PackedRecord record;
  record.offset = offset;
  record.bytes = decoder->Number<uint32_t>();
  record.crc32c = decoder->Number<uint32_t>();
  Sample sample;
  sample.label = decoder->Number<int32_t>();
  const auto part = decoder->Number<uint8_t>();
  sample.part = static_cast<SplitPart>(part);
  sample.key = decoder->ShortString();
  const auto damaged = [&](std::string_view what) {
    return DataLoss(fmt::format("{} of record {} is damaged", what, index->samples.size()));
  };
  if (!decoder->ok()) return damaged("the index entry");
  if (!IsUsableName(sample.key)) return damaged("the key");
  if (part > static_cast<uint8_t>(SplitPart::kValidation)) return damaged("the part");
  if (sample.label < -1 || sample.label >= static_cast<int64_t>(index->class_names.size())) {
    return damaged("the label");
  }
  if (!index->samples.empty() && !NaturalLess(index->samples.back().key, sample.key)) {
    return damaged("the order");
  }
  index->samples.push_back(std::move(sample));
  index->records.push_back(record);
  return OkStatus();
}

}  // namespace

PackedHeaderBytes EncodePackedHeader() {
  Encoder encoder;
  encoder.Text(kMagic);
  encoder.Number(kVersion);
  encoder.Number(uint32_t{0});
  PackedHeaderBytes header;
  std::copy(encoder.bytes().begin(), encoder.bytes().end(), header.begin());
  return header;
}

bool HasPackedMagic(std::span<const std::byte> start_of_file) {
  return Decoder(start_of_file).Text(kMagic.size()) == kMagic;
}

StatusOr<std::vector<std::byte>> EncodePackedIndex(const PackedIndex& index) {
  if (index.class_names.size() > kMaxPackedClasses) {
    return InvalidArgument(fmt::format("a packed file has at most {} classes, not {}",
                                       kMaxPackedClasses, index.class_names.size()));
  }
  Encoder encoder;
  encoder.Number(static_cast<uint32_t>(index.class_names.size()));
  for (const std::string& name : index.class_names) {
    if (name.size() > kMaxNameBytes) return InvalidArgument("a class has too long a name");
    encoder.ShortString(name);
  }
  for (size_t i = 0; i < index.samples.size(); ++i) {
    const Sample& sample = index.samples[i];
    if (sample.key.size() > kMaxNameBytes) {
      return InvalidArgument("too long a name: " + sample.key.substr(0, 100) + "...");
    }
    encoder.Number(index.records[i].bytes);
    encoder.Number(index.records[i].crc32c);
    encoder.Number(sample.label);
    encoder.Number(static_cast<uint8_t>(sample.part));
    encoder.ShortString(sample.key);
  }
  if (static_cast<int64_t>(encoder.bytes().size()) > kMaxPackedIndexBytes) {
    return InvalidArgument("too many images for one packed file");
  }
  return std::move(encoder.bytes());
}

PackedFooterBytes EncodePackedFooter(const PackedFooter& footer) {
  Encoder encoder;
  encoder.Number(footer.index_bytes);
  encoder.Number(footer.num_records);
  encoder.Number(footer.index_crc32c);
  encoder.Number(FrameCrc(EncodePackedHeader(), encoder.bytes()));
  encoder.Text(kEndMagic);
  PackedFooterBytes bytes;
  std::copy(encoder.bytes().begin(), encoder.bytes().end(), bytes.begin());
  return bytes;
}

StatusOr<PackedFooter> DecodePackedFooter(const PackedHeaderBytes& header,
                                          const PackedFooterBytes& footer) {
  if (!HasPackedMagic(header)) return DataLoss("this is not a packed file of Ringtail");
  Decoder head(std::span<const std::byte>(header).subspan(kMagic.size()));
  const auto version = head.Number<uint32_t>();
  if (version != kVersion) {
    return DataLoss(fmt::format(
        "it has version {}, this program reads version {}; prepare it again", version, kVersion));
  }
  Decoder decoder(footer);
  PackedFooter decoded;
  decoded.index_bytes = decoder.Number<uint64_t>();
  decoded.num_records = decoder.Number<uint64_t>();
  decoded.index_crc32c = decoder.Number<uint32_t>();
  const size_t covered = footer.size() - decoder.remaining();
  const auto crc = decoder.Number<uint32_t>();
  if (decoder.Text(kEndMagic.size()) != kEndMagic) {
    return DataLoss("its end is missing; it was cut off, so copy or prepare it again");
  }
  if (crc != FrameCrc(header, std::span<const std::byte>(footer).first(covered))) {
    return DataLoss("its first or last bytes are damaged");
  }
  return decoded;
}

StatusOr<PackedIndex> DecodePackedIndex(const PackedFooter& footer,
                                        std::span<const std::byte> bytes, int64_t records_end) {
  if (Crc32c(bytes) != footer.index_crc32c) return DataLoss("the index is damaged");
  if (footer.num_records > bytes.size() / kSmallestEntryBytes) {
    return DataLoss(fmt::format("the index is too short for {} records", footer.num_records));
  }
  PackedIndex index;
  Decoder decoder(bytes);
  RT_RETURN_IF_ERROR(DecodeClassNames(&decoder, &index));
  index.samples.reserve(footer.num_records);
  index.records.reserve(footer.num_records);
  int64_t offset = kPackedHeaderBytes;
  for (uint64_t i = 0; i < footer.num_records; ++i) {
    RT_RETURN_IF_ERROR(DecodeRecord(&decoder, offset, &index));
    offset += index.records.back().bytes;
  }
  if (decoder.remaining() > 0) return DataLoss("the index is longer than its records");
  if (offset != records_end) {
    return DataLoss(
        fmt::format("the records end at byte {}, but the index starts at {}", offset, records_end));
  }
  return index;
}

}  // namespace ringtail
