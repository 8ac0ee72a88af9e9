#include "data/decoding/image_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "data/decoding/byte_reader.h"
#include "data/decoding/image_size.h"
#include "data/decoding/jpeg_header.h"
#include "data/decoding/png_chunks.h"
#include "data/decoding/tiff_header.h"
#include "data/decoding/webp_header.h"
#include "data/layouts/packed_format.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr int64_t kMebi = int64_t{1} << 20;
constexpr int64_t kMega = 1'000'000;
constexpr ByteOrder kBig = ByteOrder::kBigEndian, kLittle = ByteOrder::kLittleEndian;

// IHDR must be the first chunk: length 13, "IHDR", width, height, bit depth, ...
StatusOr<ImageHeader> ParsePngHeader(std::span<const std::byte> bytes) {
  constexpr uint32_t kHeaderLength = 13;
  constexpr uint32_t kMaxSide = 0x7FFFFFFF;  // the format's own limit
  const auto width = ReadUint(bytes, 16, 4, kBig), height = ReadUint(bytes, 20, 4, kBig);
  if (ReadUint(bytes, 8, 4, kBig) != kHeaderLength || !HasTextAt(bytes, 12, "IHDR") || !width ||
      !height) {
    return DataLoss("is a PNG image with a broken or truncated header");
  }
  if (*width == 0 || *height == 0 || *width > kMaxSide || *height > kMaxSide) {
    return DataLoss(fmt::format("is a PNG image of {} x {} pixels", *width, *height));
  }
  if (!HasPngEnd(bytes)) {
    return DataLoss(fmt::format("is a PNG image truncated after {} bytes", bytes.size()));
  }
  ImageHeader header;
  header.format = ImageFormat::kPng;
  header.width = static_cast<int32_t>(*width);
  header.height = static_cast<int32_t>(*height);
  return header;
}

// File header (14 bytes: "BM", size, -, offset of the pixels), then BITMAPCOREHEADER (12 bytes,
// 16-bit sides) or BITMAPINFOHEADER and its successors (40 bytes and more; a negative height: rows
// from the top).
StatusOr<ImageHeader> ParseBmpHeader(std::span<const std::byte> bytes) {
  constexpr uint32_t kCoreHeader = 12, kInfoHeader = 40, kUncompressed = 0;
  const auto pixels = ReadUint(bytes, 10, 4, kLittle), size = ReadUint(bytes, 14, 4, kLittle);
  const bool core = size == kCoreHeader;
  const auto width = core ? ReadUint(bytes, 18, 2, kLittle) : ReadUint(bytes, 18, 4, kLittle);
  const auto height = core ? ReadUint(bytes, 20, 2, kLittle) : ReadUint(bytes, 22, 4, kLittle);
  const auto bits = ReadUint(bytes, core ? 24 : 28, 2, kLittle);
  const auto compression = core ? kUncompressed : ReadUint(bytes, 30, 4, kLittle);
  if (!size || (!core && *size < kInfoHeader) || !pixels || !width || !height || !bits ||
      !compression) {
    return DataLoss("is a BMP image with a broken or truncated header");
  }
  const int64_t columns = static_cast<int32_t>(*width);
  const int64_t rows = std::abs(static_cast<int64_t>(static_cast<int32_t>(*height)));
  if (columns <= 0 || rows == 0 || rows > INT32_MAX || *bits == 0 || *bits > 32) {
    return DataLoss(
        fmt::format("is a BMP image of {} x {} pixels with {} bits each", columns, rows, *bits));
  }
  const int64_t row_bytes = (columns * *bits + 31) / 32 * 4;
  const int64_t rows_present = (static_cast<int64_t>(bytes.size()) - *pixels) / row_bytes;
  if (*compression == kUncompressed && rows_present < rows) {
    return DataLoss(fmt::format("is a BMP image truncated after {} of {} rows",
                                std::max<int64_t>(rows_present, 0), rows));
  }
  ImageHeader header;
  header.format = ImageFormat::kBmp;
  header.width = static_cast<int32_t>(columns);
  header.height = static_cast<int32_t>(rows);
  return header;
}

// Files that contain images, but are none.
struct Archive {
  size_t offset;
  std::string_view magic, name;
};
constexpr Archive kArchives[] = {
    {0, "PK\3\4"sv, "a zip archive"},
    {0, "\x1F\x8B"sv, "a gzip archive"},
    {0, "7z\xBC\xAF\x27\x1C"sv, "a 7z archive"},
    {0, "\3757zXZ\0"sv, "an xz archive"},
    {0, "Rar!\x1A\x07"sv, "a RAR archive"},
    {257, "ustar"sv, "a tar archive"},
};

Status Refuse(std::span<const std::byte> bytes) {
  if (HasPackedMagic(bytes)) {
    return InvalidArgument(
        "is a packed file of `prepare` and no image; --data of `train` and `evaluate` takes it");
  }
  for (const Archive& archive : kArchives) {
    if (!HasTextAt(bytes, archive.offset, archive.magic)) continue;
    return InvalidArgument(
        fmt::format("is {} and no image; unpack it and give the unpacked folder", archive.name));
  }
  if (const std::string_view name = RefusedFormat(bytes); !name.empty()) {
    return InvalidArgument(
        fmt::format("is {}, which is not read; convert it to JPEG or PNG", name));
  }
  constexpr size_t kShownBytes = 4;
  std::string first;
  for (const std::byte b : bytes.first(std::min(bytes.size(), kShownBytes))) {
    first += fmt::format(" {:02X}", static_cast<unsigned>(b));
  }
  return InvalidArgument(fmt::format("is not a {} image: it starts with{}", ReadFormats(), first));
}

StatusOr<ImageHeader> ParseHeader(std::span<const std::byte> bytes) {
  const std::optional<ImageFormat> format = FormatOf(bytes);
  if (!format) return Refuse(bytes);
  switch (*format) {
    case ImageFormat::kJpeg:
      return ParseJpegHeader(bytes);
    case ImageFormat::kPng:
      return ParsePngHeader(bytes);
    case ImageFormat::kBmp:
      return ParseBmpHeader(bytes);
    case ImageFormat::kWebp:
      return ParseWebpHeader(bytes);
    case ImageFormat::kTiff:
      return ParseTiffHeader(bytes);
  }
  return Refuse(bytes);
}

}  // namespace

Status CheckImageSize(int32_t width, int32_t height, const BadImagesConfig& limits) {
  if (width > limits.max_side() || height > limits.max_side()) {
    return ResourceExhausted(
        fmt::format("is {} x {} pixels, more than data.bad_images.max_side = {}", width, height,
                    limits.max_side()));
  }
  if (int64_t{width} * height > limits.max_megapixels() * kMega) {
    return ResourceExhausted(
        fmt::format("is {} x {} pixels, more than data.bad_images.max_megapixels = {}", width,
                    height, limits.max_megapixels()));
  }
  return OkStatus();
}

StatusOr<ImageHeader> InspectImage(std::span<const std::byte> bytes,
                                   const BadImagesConfig& limits) {
  if (bytes.empty()) return DataLoss("is empty");
  if (static_cast<int64_t>(bytes.size()) > limits.max_file_mib() * kMebi) {
    return ResourceExhausted(fmt::format("has {} MiB, more than data.bad_images.max_file_mib = {}",
                                         static_cast<int64_t>(bytes.size()) / kMebi,
                                         limits.max_file_mib()));
  }
  RT_ASSIGN_OR_RETURN(const ImageHeader header, ParseHeader(bytes));
  RT_RETURN_IF_ERROR(CheckImageSize(header.width, header.height, limits));
  return header;
}

}  // namespace ringtail
