// An image made smaller for a packed file: fewer bytes to read and fewer pixels to decode in each
// epoch.
//
// The shorter side becomes `short_side` pixels, the longer one in proportion; EXIF's turn is
// applied; the result is a JPEG. Returned as it was: an image that is small enough already, and
// one that cannot be decoded (whoever loads it will say why, as for the original).
// Thread-safety: a pure function.
// Cost: one decode (a JPEG: at the nearest scale above), one encode.
#ifndef RINGTAIL_DATA_DECODING_SHRINK_IMAGE_H_
#define RINGTAIL_DATA_DECODING_SHRINK_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/data.pb.h"

namespace ringtail {

std::vector<std::byte> ShrinkImage(std::vector<std::byte> encoded, const BadImagesConfig& limits,
                                   int32_t short_side, int32_t jpeg_quality);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_SHRINK_IMAGE_H_
