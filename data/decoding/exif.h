// The one thing Ringtail needs from the EXIF block of a JPEG or WebP: how to make the stored image upright.
//
//   1 as stored    2 flipped left to right   3 rotated by 180   4 flipped top to bottom
//   5 transposed   6 rotate right by 90      7 transversed      8 rotate left by 90
//
// The tag lies in a TIFF structure (data/decoding/tiff_directory.h). At the first error the image
// counts as upright: a wrong EXIF block is no reason to lose an image.
// Thread-safety: pure functions. Source: CIPA DC-008 (Exif 2.32), sections 4.6.2 and 4.6.4 A.
#ifndef RINGTAIL_DATA_DECODING_EXIF_H_
#define RINGTAIL_DATA_DECODING_EXIF_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringtail {

// From the stored to the upright image: transpose, then flip left to right (x) and top to bottom
// (y).
struct Orientation {
  bool transposed = false, flip_x = false, flip_y = false;
  bool operator==(const Orientation&) const = default;
};

// `exif`: EXIF's value; all but 2 .. 8 mean upright.
Orientation OrientationOfExif(int32_t exif);

// `segment`: the content of a JPEG's APP1 segment, without marker and length.
Orientation ReadExifOrientation(std::span<const std::byte> segment);
// `tiff`: the same without "Exif" and two zeros in front, or a TIFF file.
Orientation ReadTiffOrientation(std::span<const std::byte> tiff);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_EXIF_H_
