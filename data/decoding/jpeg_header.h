// Parses a JPEG's segments up to its first scan, as the decoder will, but allocates nothing and
// trusts no length:
//   SOI  (FF marker length content)*  SOS  entropy-coded data ...  EOI
// Errors: DataLoss with what is wrong ("has no pixels: ..."), for the caller to put the name in
// front. Source: ITU-T T.81, annex B.
#ifndef RINGTAIL_DATA_DECODING_JPEG_HEADER_H_
#define RINGTAIL_DATA_DECODING_JPEG_HEADER_H_

#include <cstddef>
#include <span>

#include "core/status.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

// `bytes` starts with a JPEG's magic. Checks only the limits of the decoder.
StatusOr<ImageHeader> ParseJpegHeader(std::span<const std::byte> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_JPEG_HEADER_H_
