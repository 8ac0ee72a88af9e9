#include "data/decoding/png_chunks.h"

#include <cstdint>
#include <optional>

#include "data/decoding/byte_reader.h"

namespace ringtail {
namespace {

constexpr size_t kNameOffset = 4, kAroundContent = 12;  // length, name, checksum

struct Chunk {
  std::span<const std::byte> bytes;  // with length, name and checksum
  bool is_end = false;               // IEND
};

// The chunk at `offset`; nullopt if it is incomplete.
std::optional<Chunk> ChunkAt(std::span<const std::byte> png, size_t offset) {
  const auto length = ReadUint(png, offset, 4, ByteOrder::kBigEndian);
  if (!length) return std::nullopt;
  const uint64_t size = uint64_t{*length} + kAroundContent;
  if (size > png.size() - offset) return std::nullopt;
  const auto bytes = png.subspan(offset, size);
  return Chunk{bytes, HasTextAt(bytes, kNameOffset, "IEND")};
}

bool MakesPixels(const Chunk& chunk) {
  constexpr std::byte kAncillary{0x20};  // the bit of lower case letters
  return (chunk.bytes[kNameOffset] & kAncillary) == std::byte{0} ||
         HasTextAt(chunk.bytes, kNameOffset, "tRNS");
}

}  // namespace

bool HasPngEnd(std::span<const std::byte> png) {
  size_t offset = kPngMagic.size();
  while (const auto chunk = ChunkAt(png, offset)) {
    if (chunk->is_end) return true;
    offset += chunk->bytes.size();
  }
  return false;
}

std::span<const std::byte> PixelChunks(std::span<const std::byte> png,
                                       std::vector<std::byte>* kept) {
  kept->clear();
  bool copies = false;  // whether a chunk has been left out
  size_t offset = kPngMagic.size();
  while (const auto chunk = ChunkAt(png, offset)) {
    if (!MakesPixels(*chunk)) {
      if (!copies) kept->assign(png.begin(), png.begin() + static_cast<ptrdiff_t>(offset));
      copies = true;
    } else if (copies) {
      kept->insert(kept->end(), chunk->bytes.begin(), chunk->bytes.end());
    }
    offset += chunk->bytes.size();
    if (chunk->is_end) break;
  }
  return copies ? std::span<const std::byte>(*kept) : png.first(offset);
}

}  // namespace ringtail
