// The limits on an image's sides and pixels (BadImagesConfig), as InspectImage applies them
// (data/decoding/image_guard.h; both are in image_guard.cc), for pixels that are in no file.
// Errors: ResourceExhausted, a predicate ("is 51 x 20 pixels, more than ..."). Thread-safety: a pure
// function.
#ifndef RINGTAIL_DATA_DECODING_IMAGE_SIZE_H_
#define RINGTAIL_DATA_DECODING_IMAGE_SIZE_H_

#include <cstdint>

#include "core/status.h"
#include "data/data.pb.h"

namespace ringtail {

Status CheckImageSize(int32_t width, int32_t height, const BadImagesConfig& limits);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_SIZE_H_
