// The TIFF part of data/decoding/decode.h (which has the contract), on libtiff: a whole image.
// Memory: 7 bytes a pixel, and a strip or tile; a single allocation of libtiff is limited by the image's
// size and the file's, whatever the file claims. Writes nothing to stderr.
#ifndef RINGTAIL_DATA_DECODING_TIFF_DECODE_H_
#define RINGTAIL_DATA_DECODING_TIFF_DECODE_H_

#include <cstddef>
#include <span>

#include "core/status.h"
#include "data/decoding/image.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

// `bytes` that InspectImage accepted, and its `header`. Transparent pixels are blended with white.
Status DecodeTiff(std::span<const std::byte> bytes, const ImageHeader& header, Image* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_TIFF_DECODE_H_
