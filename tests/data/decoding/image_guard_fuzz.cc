// Fuzz target: any bytes may reach the guard, and accepted files reach the decoders. The limits are
// small, so that nearly all time is spent parsing.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "data/decoding/decode.h"
#include "data/decoding/image_guard.h"

constexpr int kMaxSide = 256;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringtail;  // NOLINT(google-build-using-namespace)
  BadImagesConfig limits;
  limits.set_max_side(kMaxSide);
  limits.set_max_megapixels(1);
  limits.set_max_file_mib(1);
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const StatusOr<ImageHeader> header = InspectImage(bytes, limits);
  if (!header.ok()) {
    RT_CHECK(!header.status().message().empty(), "a refusal needs a reason");
    return 0;
  }
  RT_CHECK(header->width >= 1 && header->width <= kMaxSide && header->height >= 1 &&
               header->height <= kMaxSide,
           "the guard let an image through that is too large");
  // libpng prints to stderr, and a BMP has nothing to decode.
  if (header->format == ImageFormat::kPng || header->format == ImageFormat::kBmp) return 0;
  const int32_t denominator = int32_t{1} << (size % 4);
  const Region whole = WholeRegion(header->width, header->height, denominator);
  Region region = whole;
  region.y = whole.height / 2;
  region.height = whole.height - region.y;
  region.x = whole.width / 3;
  region.width = (whole.width - region.x + 1) / 2;
  Image image;
  (void)DecodeRegion(bytes, *header, region, &image);
  return 0;
}
