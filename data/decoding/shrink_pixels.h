// A region of pixels in memory, shrunk by averaging blocks of them: what DecodeRegion
// (data/decoding/decode.h) makes of a PNG or BMP file that holds these pixels, to the same bits.
// (Both are in decode.cc.) Precondition: the region lies in the shrunk image.
// Errors: Internal if OpenCV fails, for lack of memory. Thread-safety: any thread, one `dst` each.
// Cost: one pass over the pixels of the region.
#ifndef RINGTAIL_DATA_DECODING_SHRINK_PIXELS_H_
#define RINGTAIL_DATA_DECODING_SHRINK_PIXELS_H_

#include "core/status.h"
#include "data/decoding/decode.h"
#include "data/decoding/image.h"

namespace ringtail {

Status ShrinkPixels(const ImageView& pixels, const Region& region, Image* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_SHRINK_PIXELS_H_
