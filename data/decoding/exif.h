// The one thing Ringtail wants from a JPEG's EXIF block: how to turn the image so that it stands
// upright.
//
//   orientation  1 as stored    2 mirrored       3 turned by 180   4 mirrored top to bottom
//                5 transposed   6 turn 90 right  7 transversed     8 turn 90 left
//
// The tag lies in a TIFF structure: "II" or "MM" (byte order), 42, offset of a directory; a
// directory is a count and 12-byte entries (tag, type, count, value). Every offset is checked; at
// the first thing that does not fit the answer is 1, because a wrong EXIF block is no reason to
// lose an image. Source: CIPA DC-008 (Exif 2.32), sections 4.6.2 and 4.6.4 A.
#ifndef RINGTAIL_DATA_DECODING_EXIF_H_
#define RINGTAIL_DATA_DECODING_EXIF_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringtail {

// `segment`: the content of a JPEG's APP1 segment, without marker and length.
int32_t ExifOrientation(std::span<const std::byte> segment);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_EXIF_H_
