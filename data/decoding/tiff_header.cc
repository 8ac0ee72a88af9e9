#include "data/decoding/tiff_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "core/round.h"
#include "data/decoding/exif.h"
#include "data/decoding/tiff_directory.h"

namespace ringtail {
namespace {

enum Tag : uint32_t {
  kSubfileType = 254,
  kWidth = 256,
  kHeight = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

constexpr uint32_t kReads[] = {1, 5, 8, 32773, 32946};  // none, LZW, Deflate, PackBits, Deflate

// Bits are powers of two, so a set of them is their sum.
struct Kind {
  uint32_t photometric, samples, bits;
};
constexpr uint32_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2, kPalette = 3, kCmyk = 5;
constexpr Kind kKinds[] = {
    {kWhiteIsZero, 1, 1 + 2 + 4 + 8 + 16},
    {kBlackIsZero, 1, 1 + 2 + 4 + 8 + 16},
    {kRgb, 3, 8 + 16},
    {kRgb, 4, 8 + 16},
    {kPalette, 1, 1 + 2 + 4 + 8},
    {kCmyk, 4, 8},
};

Status Broken() { return DataLoss("is a TIFF image with a broken or truncated header"); }

Status NotRead(const std::string& what) {
  return InvalidArgument(
      fmt::format("is a TIFF image {}, which is not read; convert it to JPEG or PNG", what));
}

// The first number of a tag; `otherwise` if the tag is not there; nullopt if it cannot be read.
std::optional<uint32_t> Number(const TiffDirectory& directory, Tag tag,
                               std::optional<uint32_t> otherwise = std::nullopt) {
  const auto entry = directory.Find(tag);
  return entry ? directory.Value(*entry) : otherwise;
}

// Whether a tag is not there, or has this value for each of `samples`.
bool AllAre(const TiffDirectory& directory, Tag tag, uint32_t samples, uint32_t value) {
  const auto entry = directory.Find(tag);
  if (!entry) return true;
  for (uint32_t i = 0; i < samples; ++i) {
    if (directory.Value(*entry, i) != value) return false;
  }
  return true;
}

// What is known of a fourth channel beside RGB: associated or unassociated alpha.
bool IsAlpha(const TiffDirectory& directory) {
  constexpr uint32_t kAssociated = 1, kUnassociated = 2;
  const uint32_t meaning = Number(directory, kExtraSamples, 0).value_or(0);
  return meaning == kAssociated || meaning == kUnassociated;
}

// Gives the number of channels that are stored apart from each other.
StatusOr<uint32_t> CheckKind(const TiffDirectory& directory) {
  constexpr uint32_t kReducedOrMask = 1 + 4, kUnsigned = 1, kTogether = 1, kApart = 2;
  const auto subfile = Number(directory, kSubfileType, 0);
  const auto compression = Number(directory, kCompression, 1);
  const auto photometric = Number(directory, kPhotometric);
  const auto samples = Number(directory, kSamplesPerPixel, 1);
  const auto bits = Number(directory, kBitsPerSample, 1);
  const auto planes = Number(directory, kPlanarConfiguration, kTogether);
  if (!subfile || !compression || !photometric || !samples || !bits || !planes) return Broken();
  if ((*subfile & kReducedOrMask) != 0) {
    return NotRead("whose first page is a reduced image or a mask (of a camera's raw data?)");
  }
  if (std::ranges::find(kReads, *compression) == std::end(kReads)) {
    return NotRead(fmt::format("with compression {} (none, LZW, Deflate and PackBits are read)",
                               *compression));
  }
  const bool known = std::ranges::any_of(kKinds, [&](const Kind& kind) {
    return kind.photometric == *photometric && kind.samples == *samples &&
           (kind.bits & *bits) == *bits && std::has_single_bit(*bits);
  });
  if (!known || !AllAre(directory, kBitsPerSample, *samples, *bits) ||
      !AllAre(directory, kSampleFormat, *samples, kUnsigned)) {
    return NotRead(fmt::format("of {} x {} bits a pixel (photometric interpretation {})", *samples,
                               *bits, *photometric));
  }
  if (*photometric == kRgb && *samples == 4 && !IsAlpha(directory)) {
    return NotRead("with a fourth channel of unknown meaning");
  }
  if (*planes != kTogether && *planes != kApart) return Broken();
  return *planes == kApart ? *samples : 1;
}

// Strips or tiles.
struct Pieces {
  Tag offsets, bytes;
  uint64_t count = 0;
};

StatusOr<Pieces> FindPieces(const TiffDirectory& directory, uint64_t width, uint64_t height) {
  if (!directory.Find(kTileWidth)) {
    const auto rows = Number(directory, kRowsPerStrip, static_cast<uint32_t>(height));
    if (!rows || *rows == 0) return Broken();
    return Pieces{kStripOffsets, kStripByteCounts, CeilDivide(height, uint64_t{*rows})};
  }
  const auto across = Number(directory, kTileWidth), down = Number(directory, kTileHeight);
  if (!across || !down || *across == 0 || *down == 0) return Broken();
  const auto most = static_cast<uint64_t>(
      MostTilePixels(static_cast<int64_t>(width), static_cast<int64_t>(height)));
  if (uint64_t{*across} * *down > most) {
    return DataLoss(fmt::format("is a TIFF image of {} x {} pixels in tiles of {} x {}", width,
                                height, *across, *down));
  }
  return Pieces{kTileOffsets, kTileByteCounts,
                CeilDivide(width, uint64_t{*across}) * CeilDivide(height, uint64_t{*down})};
}

Status CheckPieces(std::span<const std::byte> bytes, const TiffDirectory& directory,
                   const Pieces& pieces) {
  const auto offsets = directory.Find(pieces.offsets), sizes = directory.Find(pieces.bytes);
  if (!offsets || !sizes || offsets->count < pieces.count || sizes->count < pieces.count) {
    return Broken();
  }
  for (uint32_t i = 0; i < pieces.count; ++i) {
    const auto offset = directory.Value(*offsets, i), size = directory.Value(*sizes, i);
    if (!offset || !size) return Broken();
    if (*offset > bytes.size() || *size > bytes.size() - *offset) {
      return DataLoss(fmt::format("is a TIFF image truncated after {} bytes", bytes.size()));
    }
  }
  return OkStatus();
}

}  // namespace

int64_t MostTilePixels(int64_t width, int64_t height) {
  constexpr int64_t kUsual = int64_t{1} << 22;  // 2048 x 2048, also of a small image
  return std::max(2 * width * height, kUsual);
}

StatusOr<ImageHeader> ParseTiffHeader(std::span<const std::byte> bytes) {
  const auto directory = TiffDirectory::First(bytes);
  if (!directory) return Broken();
  const auto width = Number(*directory, kWidth), height = Number(*directory, kHeight);
  if (!width || !height) return Broken();
  constexpr uint32_t kMaxSide = 1 << 30;  // so that no product overflows
  if (*width == 0 || *height == 0 || *width > kMaxSide || *height > kMaxSide) {
    return DataLoss(fmt::format("is a TIFF image of {} x {} pixels", *width, *height));
  }
  RT_ASSIGN_OR_RETURN(const uint32_t planes, CheckKind(*directory));
  RT_ASSIGN_OR_RETURN(Pieces pieces, FindPieces(*directory, *width, *height));
  pieces.count *= planes;
  RT_RETURN_IF_ERROR(CheckPieces(bytes, *directory, pieces));
  ImageHeader header;
  header.format = ImageFormat::kTiff;
  header.width = static_cast<int32_t>(*width);
  header.height = static_cast<int32_t>(*height);
  header.orientation = ReadTiffOrientation(bytes);
  return header;
}

}  // namespace ringtail
