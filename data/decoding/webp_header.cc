#include "data/decoding/webp_header.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/decoding/byte_reader.h"
#include "data/decoding/exif.h"

namespace ringtail {
namespace {

constexpr ByteOrder kLittle = ByteOrder::kLittleEndian;
constexpr size_t kChunkHeader = 8, kFirstChunk = 12;

struct Size {
  uint32_t width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

Status Broken() { return DataLoss("is a WebP image with a broken or truncated header"); }

Status Animated() {
  return InvalidArgument("is an animated WebP image, which is not read; convert it to JPEG or PNG");
}

struct Chunk {
  std::span<const std::byte> name, content;
  size_t next = 0;  // offset of the next one

  bool Is(std::string_view text) const { return HasTextAt(name, 0, text); }
};

// nullopt if it is incomplete.
std::optional<Chunk> ChunkAt(std::span<const std::byte> file, size_t offset) {
  const auto length = ReadUint(file, offset + 4, 4, kLittle);
  if (!length || *length > file.size() - offset - kChunkHeader) return std::nullopt;
  const size_t padding = *length % 2;
  return Chunk{.name = file.subspan(offset, 4),
               .content = file.subspan(offset + kChunkHeader, *length),
               .next = offset + kChunkHeader + *length + padding};
}

// Frame tag (3 bytes; the lowest bit is 0 in a key frame), start code, 14 bits of each side.
std::optional<Size> LossySize(std::span<const std::byte> content) {
  constexpr uint32_t kStartCode = 0x2A019D, kSide = 0x3FFF;
  const auto tag = ReadUint(content, 0, 1, kLittle);
  const auto width = ReadUint(content, 6, 2, kLittle), height = ReadUint(content, 8, 2, kLittle);
  if (!width || !height || *tag % 2 != 0 || ReadUint(content, 3, 3, kLittle) != kStartCode) {
    return std::nullopt;
  }
  return Size{*width & kSide, *height & kSide};
}

// Signature, then width - 1 and height - 1 in 14 bits each, a bit for alpha, and the version.
std::optional<Size> LosslessSize(std::span<const std::byte> content) {
  constexpr uint32_t kSignature = 0x2F, kSide = 0x3FFF;
  const auto bits = ReadUint(content, 1, 4, kLittle);
  if (!bits || ReadUint(content, 0, 1, kLittle) != kSignature || *bits >> 29 != 0) {
    return std::nullopt;
  }
  return Size{(*bits & kSide) + 1, (*bits >> 14 & kSide) + 1};
}

// VP8X: flags, 3 unused bytes, width - 1 and height - 1 in 24 bits each.
std::optional<Size> CanvasSize(std::span<const std::byte> content) {
  const auto width = ReadUint(content, 4, 3, kLittle), height = ReadUint(content, 7, 3, kLittle);
  if (!width || !height) return std::nullopt;
  return Size{*width + 1, *height + 1};
}

bool IsAnimated(std::span<const std::byte> vp8x) {
  constexpr std::byte kAnimation{0x02};
  return !vp8x.empty() && (vp8x[0] & kAnimation) != std::byte{0};
}

Orientation ReadOrientation(std::span<const std::byte> exif) {
  return HasTextAt(exif, 0, "Exif") ? ReadExifOrientation(exif) : ReadTiffOrientation(exif);
}

// The chunks of the extended layout, from the one after VP8X on. `found`: the image's size.
Status ReadExtended(std::span<const std::byte> file, size_t offset, std::optional<Size>* found,
                    Orientation* orientation) {
  while (offset < file.size()) {
    const auto chunk = ChunkAt(file, offset);
    if (!chunk) return Broken();
    if (chunk->Is("ANIM") || chunk->Is("ANMF")) return Animated();
    if (!*found && chunk->Is("VP8 ")) *found = LossySize(chunk->content);
    if (!*found && chunk->Is("VP8L")) *found = LosslessSize(chunk->content);
    if (chunk->Is("EXIF")) *orientation = ReadOrientation(chunk->content);
    offset = chunk->next;
  }
  return OkStatus();
}

}  // namespace

StatusOr<ImageHeader> ParseWebpHeader(std::span<const std::byte> bytes) {
  const auto length = ReadUint(bytes, 4, 4, kLittle);
  if (!length || !HasTextAt(bytes, 0, "RIFF") || !HasTextAt(bytes, 8, "WEBP")) return Broken();
  if (*length > bytes.size() - kChunkHeader) {
    return DataLoss(fmt::format("is a WebP image truncated after {} bytes", bytes.size()));
  }
  const auto file = bytes.first(kChunkHeader + *length);
  const auto first = ChunkAt(file, kFirstChunk);
  if (!first) return Broken();
  ImageHeader header;
  header.format = ImageFormat::kWebp;
  std::optional<Size> size;
  if (first->Is("VP8 ")) size = LossySize(first->content);
  if (first->Is("VP8L")) size = LosslessSize(first->content);
  if (first->Is("VP8X")) {
    if (IsAnimated(first->content)) return Animated();
    RT_RETURN_IF_ERROR(ReadExtended(file, first->next, &size, &header.orientation));
    if (size != CanvasSize(first->content)) return Broken();
  }
  if (!size || size->width == 0 || size->height == 0) return Broken();
  header.width = static_cast<int32_t>(size->width);
  header.height = static_cast<int32_t>(size->height);
  return header;
}

}  // namespace ringtail
