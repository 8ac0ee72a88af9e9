#include "data/decoding/exif.h"

#include <string_view>

#include "data/decoding/byte_reader.h"
#include "data/decoding/tiff_directory.h"

namespace ringtail {
namespace {

constexpr std::string_view kExifName("Exif\0\0", 6);
constexpr uint32_t kOrientationTag = 0x0112;

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

Orientation ReadTiffOrientation(std::span<const std::byte> tiff) {
  const auto directory = TiffDirectory::First(tiff);
  const auto entry = directory ? directory->Find(kOrientationTag) : std::nullopt;
  if (!entry || entry->type != static_cast<uint32_t>(TiffType::kShort)) return {};
  const auto value = ReadUint(tiff, entry->field, 2, directory->order());
  return value ? OrientationOfExif(static_cast<int32_t>(*value)) : Orientation();
}

Orientation ReadExifOrientation(std::span<const std::byte> segment) {
  if (!HasTextAt(segment, 0, kExifName)) return {};
  return ReadTiffOrientation(segment.subspan(kExifName.size()));
}

}  // namespace ringtail
