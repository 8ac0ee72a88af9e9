// A picture made smaller for a packed file: fewer bytes to read and fewer pixels to decode in each
// epoch.
//
// The shorter side becomes `short_side` pixels, the longer one in proportion; EXIF's turn is
// applied; the result is a JPEG. Returned as it was: a picture that is small enough already, and
// one that cannot be decoded (whoever loads it will say why, as for the original).
// Thread-safety: a pure function.
// Cost: one decode (a JPEG: at the nearest scale above), one encode.
#ifndef RINGTAIL_DATA_SHRINK_PICTURE_H_
#define RINGTAIL_DATA_SHRINK_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/data.pb.h"

namespace ringtail {

std::vector<std::byte> ShrinkPicture(std::vector<std::byte> encoded,
                                     const BadPicturesConfig& limits, int32_t short_side,
                                     int32_t jpeg_quality);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SHRINK_PICTURE_H_
