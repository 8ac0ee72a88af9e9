// Parses the first directory of a TIFF file: size, kind of pixels, and where they are. Of a file with
// several pages the first is the image.
//
// Read: grey (1 to 16 bits), palettes (1 to 8), RGB and RGB with alpha (8 or 16), CMYK (8), in strips or
// tiles, channels together or apart, uncompressed or by LZW, Deflate or PackBits. Everything else is
// refused by name: other compressions (so no decoder of JPEG, fax or LERC data is reached), floats,
// channels of unknown meaning, reduced images (a camera's raw file has one in front).
//
// Allocates nothing and trusts no length: all data must lie in the file, and tiles may not be much
// larger than the image. Errors: DataLoss (broken, truncated), InvalidArgument (of a kind that is not
// read), for the caller to put the name in front.
// Cost: reads the lists of strips or tiles. Source: TIFF revision 6.0 (1992).
#ifndef RINGTAIL_DATA_DECODING_TIFF_HEADER_H_
#define RINGTAIL_DATA_DECODING_TIFF_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

StatusOr<ImageHeader> ParseTiffHeader(std::span<const std::byte> bytes);

// Pixels that a tile may have.
int64_t MostTilePixels(int64_t width, int64_t height);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_TIFF_HEADER_H_
