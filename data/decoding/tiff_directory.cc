#include "data/decoding/tiff_directory.h"

namespace ringtail {
namespace {

constexpr uint32_t kTiffMagic = 42;
constexpr size_t kEntryBytes = 12, kFieldBytes = 4;

std::optional<ByteOrder> ByteOrderOf(std::span<const std::byte> tiff) {
  if (HasTextAt(tiff, 0, "II")) return ByteOrder::kLittleEndian;
  if (HasTextAt(tiff, 0, "MM")) return ByteOrder::kBigEndian;
  return std::nullopt;
}

// Bytes of a number; 0 for types that hold no whole numbers.
size_t SizeOf(uint32_t type) {
  switch (static_cast<TiffType>(type)) {
    case TiffType::kByte:
      return 1;
    case TiffType::kShort:
      return 2;
    case TiffType::kLong:
      return 4;
  }
  return 0;
}

}  // namespace

std::optional<TiffDirectory> TiffDirectory::First(std::span<const std::byte> tiff) {
  const auto order = ByteOrderOf(tiff);
  if (!order || ReadUint(tiff, 2, 2, *order) != kTiffMagic) return std::nullopt;
  const auto begin = ReadUint(tiff, 4, 4, *order);
  if (!begin) return std::nullopt;
  const auto entries = ReadUint(tiff, *begin, 2, *order);
  if (!entries) return std::nullopt;
  return TiffDirectory(tiff, *order, size_t{*begin} + 2, *entries);
}

std::optional<TiffEntry> TiffDirectory::Find(uint32_t tag) const {
  for (uint32_t i = 0; i < entries_; ++i) {
    const size_t entry = begin_ + i * kEntryBytes;
    const auto found = ReadUint(tiff_, entry, 2, order_);
    if (!found) return std::nullopt;
    if (*found != tag) continue;
    const auto type = ReadUint(tiff_, entry + 2, 2, order_);
    const auto count = ReadUint(tiff_, entry + 4, 4, order_);
    if (!type || !count) return std::nullopt;
    return TiffEntry{.type = *type, .count = *count, .field = entry + 8};
  }
  return std::nullopt;
}

std::optional<uint32_t> TiffDirectory::Value(const TiffEntry& entry, uint32_t index) const {
  const size_t size = SizeOf(entry.type);
  if (size == 0 || index >= entry.count) return std::nullopt;
  size_t values = entry.field;
  if (entry.count * size > kFieldBytes) {
    const auto offset = ReadUint(tiff_, entry.field, 4, order_);
    if (!offset) return std::nullopt;
    values = *offset;
  }
  return ReadUint(tiff_, values + index * size, size, order_);
}

}  // namespace ringtail
