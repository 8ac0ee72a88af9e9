// Shrinks an image for a packed file: fewer bytes to read and fewer pixels to decode in each epoch.
//
// The shorter side becomes `short_side` pixels, the longer one in proportion; EXIF's orientation is
// applied; the result is a JPEG. Images that are already small enough, or that cannot be decoded,
// are returned unchanged (loading them gives the same error as the original).
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
