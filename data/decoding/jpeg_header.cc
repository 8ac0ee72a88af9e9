#include "data/decoding/jpeg_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/decoding/byte_reader.h"
#include "data/decoding/exif.h"

namespace ringtail {
namespace {

constexpr uint32_t kMarkerPrefix = 0xFF, kTemporary = 0x01, kFirstRestart = 0xD0,
                   kLastRestart = 0xD7, kStartOfImage = 0xD8, kEndOfImage = 0xD9,
                   kStartOfScan = 0xDA, kApp1 = 0xE1;
// Start-of-frame markers are C0 .. CF without DHT (C4), JPG (C8) and DAC (CC).
constexpr uint32_t kFirstFrame = 0xC0, kLastFrame = 0xCF;
constexpr size_t kFrameFixedBytes = 6, kBytesPerComponent = 3;
constexpr uint32_t kDecodableBits = 8;

bool IsStartOfFrame(uint32_t marker) {
  return marker >= kFirstFrame && marker <= kLastFrame && marker != 0xC4 && marker != 0xC8 &&
         marker != 0xCC;
}

// Sequential and progressive, Huffman (C0 .. C2) and arithmetic (C9, CA);
// not lossless, not hierarchical.
bool IsDecodableFrame(uint32_t marker) {
  return (marker >= 0xC0 && marker <= 0xC2) || marker == 0xC9 || marker == 0xCA;
}

bool HasNoContent(uint32_t marker) {
  return marker == kTemporary || (marker >= kFirstRestart && marker <= kLastRestart);
}

// Moves `offset` past the next marker and returns the marker. Like the decoder, skips junk between
// segments.
std::optional<uint32_t> NextMarker(std::span<const std::byte> bytes, size_t* offset) {
  while (*offset + 1 < bytes.size()) {
    if (static_cast<uint32_t>(bytes[*offset]) == kMarkerPrefix) {
      const auto marker = static_cast<uint32_t>(bytes[*offset + 1]);
      if (marker != kMarkerPrefix && marker != 0) {
        *offset += 2;
        return marker;
      }
    }
    ++*offset;
  }
  return std::nullopt;
}

Status ParseFrame(uint32_t marker, std::span<const std::byte> content, ImageHeader* header) {
  if (header->width != 0) return DataLoss("is a broken JPEG image: it has two frame headers");
  if (!IsDecodableFrame(marker)) {
    return InvalidArgument(fmt::format(
        "is a JPEG image of a rare kind (frame marker {:02X}) that cannot be decoded; convert it",
        marker));
  }
  const auto bits = ReadUint(content, 0, 1, ByteOrder::kBigEndian);
  const auto height = ReadUint(content, 1, 2, ByteOrder::kBigEndian);
  const auto width = ReadUint(content, 3, 2, ByteOrder::kBigEndian);
  const auto components = ReadUint(content, 5, 1, ByteOrder::kBigEndian);
  if (!components || content.size() != kFrameFixedBytes + kBytesPerComponent * *components) {
    return DataLoss("is a broken JPEG image: its frame header has a wrong length");
  }
  if (*bits != kDecodableBits) {
    return InvalidArgument(fmt::format(
        "is a JPEG image with {} bits per sample; only 8 can be decoded, convert it", *bits));
  }
  if (*width == 0 || *height == 0) {
    return DataLoss(fmt::format("is a JPEG image of {} x {} pixels", *width, *height));
  }
  if (*components != 1 && *components != 3 && *components != 4) {
    return InvalidArgument(fmt::format(
        "is a JPEG image with {} components; 1, 3 or 4 can be decoded, convert it", *components));
  }
  header->width = static_cast<int32_t>(*width);
  header->height = static_cast<int32_t>(*height);
  header->components = static_cast<int32_t>(*components);
  return OkStatus();
}

// In entropy-coded data FF is always followed by 00 or a restart marker, so an end marker after the
// start of the first scan means that the image was written to its end.
bool HasEndMarker(std::span<const std::byte> data) {
  for (size_t i = data.size(); i >= 2; --i) {
    if (static_cast<uint32_t>(data[i - 1]) == kEndOfImage &&
        static_cast<uint32_t>(data[i - 2]) == kMarkerPrefix) {
      return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<ImageHeader> ParseJpegHeader(std::span<const std::byte> bytes) {
  ImageHeader header;
  header.format = ImageFormat::kJpeg;
  size_t offset = 2;  // after the start-of-image marker
  while (const auto marker = NextMarker(bytes, &offset)) {
    if (HasNoContent(*marker)) continue;
    if (*marker == kEndOfImage) return DataLoss("is a JPEG image that ends before its pixels");
    if (*marker == kStartOfImage) return DataLoss("is a broken JPEG image: it starts twice");
    const auto length = ReadUint(bytes, offset, 2, ByteOrder::kBigEndian);
    if (!length || *length > bytes.size() - offset) break;
    if (*length < 2) return DataLoss("is a broken JPEG image: a segment has a wrong length");
    const auto content = bytes.subspan(offset + 2, *length - 2);
    offset += *length;
    if (IsStartOfFrame(*marker)) RT_RETURN_IF_ERROR(ParseFrame(*marker, content, &header));
    if (*marker == kApp1 && header.orientation == Orientation()) {
      header.orientation = ReadExifOrientation(content);
    }
    if (*marker == kStartOfScan) {
      if (header.width == 0)
        return DataLoss("is a broken JPEG image: pixels without a frame header");
      header.complete = HasEndMarker(bytes.subspan(offset));
      return header;
    }
  }
  return DataLoss(
      fmt::format("is a JPEG image truncated in its header, after {} bytes", bytes.size()));
}

}  // namespace ringtail
