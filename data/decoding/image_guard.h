// The guard in front of the decoders: says what a file is and how large it will become, before any
// decoder sees a byte of it. A decoder believes what a file claims: a 15 KB JPEG whose header says
// 32767 x 32767 costs it 17 s and 6 GB, and a file of any other format may reach a library that
// nobody meant to call.
//
// Let through: JPEG (baseline, extended, progressive; grey, YCbCr, RGB, CMYK, YCCK; 8 bits), PNG,
// BMP, by their first bytes, whatever the file is called. All others are refused by name ("is a GIF
// image ..."). Checked against BadImagesConfig: bytes of the file, pixels, sides.
//
// Cost: a few hundred bytes read, nothing allocated. Thread-safety: a pure function.
// Errors: DataLoss (broken), InvalidArgument (a format that is not read), ResourceExhausted (a
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
  Orientation orientation;        // JPEG: from EXIF
  bool complete = true;           // JPEG: an end marker follows the first scan

  bool operator==(const ImageHeader&) const = default;
  // As displayed: after EXIF's orientation.
  int32_t upright_width() const { return orientation.transposed ? height : width; }
  int32_t upright_height() const { return orientation.transposed ? width : height; }
};

StatusOr<ImageHeader> InspectImage(std::span<const std::byte> bytes, const BadImagesConfig& limits);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_GUARD_H_
