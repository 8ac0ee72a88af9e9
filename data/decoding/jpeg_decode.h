// The JPEG half of data/decoding/decode.h (which has the contract), on libjpeg-turbo.
#ifndef RINGTAIL_DATA_DECODING_JPEG_DECODE_H_
#define RINGTAIL_DATA_DECODING_JPEG_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "data/decoding/decode.h"
#include "data/decoding/image.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

// The transform of 8 x 8 pixels can omit coefficients down to the mean. Of the scales in between,
// only the powers of two have SIMD code.
inline constexpr int32_t kMaxJpegDenominator = 8;

// region.denominator: 1, 2, 4 or 8.
Status DecodeJpegRegion(std::span<const std::byte> bytes, const ImageHeader& header,
                        const Region& region, Image* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_JPEG_DECODE_H_
