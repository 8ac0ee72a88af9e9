// The guard in front of the decoders: determines a file's format and decoded size before a decoder
// sees a byte of it. Decoders trust a file's claims: a 15 KB JPEG whose header says 32767 x 32767
// costs 17 s and 6 GB, and a file of another format may reach a library that was never meant to be
// called.
//
// Accepts JPEG (baseline, extended, progressive; grey, YCbCr, RGB, CMYK, YCCK; 8 bits), PNG, BMP,
// WebP (not animated) and TIFF (the kinds of data/decoding/tiff_header.h), by their first bytes,
// whatever the file's name. All others are refused by format ("is a GIF image ..."). Checks the file's bytes, pixels and sides against BadImagesConfig.
//
// Cost: reads a few hundred bytes (of a TIFF the lists of its strips), allocates nothing. Thread-safety: a pure function.
// Errors: DataLoss (broken), InvalidArgument (an unsupported format), ResourceExhausted (a
// limit); the message is a predicate without the file's name ("is empty"), so that callers can put
// the name in front.
#ifndef RINGTAIL_DATA_DECODING_IMAGE_GUARD_H_
#define RINGTAIL_DATA_DECODING_IMAGE_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/decoding/exif.h"
#include "data/decoding/image_format.h"

namespace ringtail {

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int32_t width = 0, height = 0;  // pixels, as stored
  int32_t components = 3;         // JPEG: 1 grey, 3 colour, 4 CMYK or YCCK
  Orientation orientation;        // JPEG, WebP, TIFF: from EXIF, or its tag
  bool complete = true;           // JPEG: an end marker follows the first scan

  bool operator==(const ImageHeader&) const = default;
  // As displayed: after EXIF's orientation.
  int32_t upright_width() const { return orientation.transposed ? height : width; }
  int32_t upright_height() const { return orientation.transposed ? width : height; }
};

StatusOr<ImageHeader> InspectImage(std::span<const std::byte> bytes, const BadImagesConfig& limits);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_GUARD_H_
