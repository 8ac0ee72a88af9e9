#include "data/decoding/exif.h"

#include <optional>
#include <string_view>

#include "data/decoding/byte_reader.h"

namespace ringtail {
namespace {

constexpr std::string_view kExifName("Exif\0\0", 6);
constexpr uint32_t kTiffMagic = 42, kOrientationTag = 0x0112, kTypeShort = 3;
constexpr size_t kEntryBytes = 12;

std::optional<ByteOrder> TiffByteOrder(std::span<const std::byte> tiff) {
  if (HasTextAt(tiff, 0, "II")) return ByteOrder::kLittleEndian;
  if (HasTextAt(tiff, 0, "MM")) return ByteOrder::kBigEndian;
  return std::nullopt;
}

}  // namespace

Orientation OrientationOfExif(int32_t exif) {
  switch (exif) {
    case 2:
      return {.flip_x = true};
    case 3:
      return {.flip_x = true, .flip_y = true};
    case 4:
      return {.flip_y = true};
    case 5:
      return {.transposed = true};
    case 6:
      return {.transposed = true, .flip_x = true};
    case 7:
      return {.transposed = true, .flip_x = true, .flip_y = true};
    case 8:
      return {.transposed = true, .flip_y = true};
    default:
      return {};
  }
}

Orientation ReadExifOrientation(std::span<const std::byte> segment) {
  if (!HasTextAt(segment, 0, kExifName)) return {};
  const auto tiff = segment.subspan(kExifName.size());
  const auto order = TiffByteOrder(tiff);
  if (!order || ReadUint(tiff, 2, 2, *order) != kTiffMagic) return {};
  const auto directory = ReadUint(tiff, 4, 4, *order);
  if (!directory) return {};
  const auto entries = ReadUint(tiff, *directory, 2, *order);
  for (uint32_t i = 0; entries && i < *entries; ++i) {
    const size_t entry = size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = ReadUint(tiff, entry, 2, *order);
    if (!tag) return {};
    if (*tag != kOrientationTag) continue;
    const auto type = ReadUint(tiff, entry + 2, 2, *order);
    const auto value = ReadUint(tiff, entry + 8, 2, *order);
    if (type != kTypeShort || !value) return {};
    return OrientationOfExif(static_cast<int32_t>(*value));
  }
  return {};
}

}  // namespace ringtail
