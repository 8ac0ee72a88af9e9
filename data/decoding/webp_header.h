// Parses a WebP file's chunks up to its image, as the decoder will, but allocates nothing and trusts
// no length:
//   "RIFF" length "WEBP"  VP8 (lossy) or VP8L (lossless)                    the simple layout
//                         VP8X  [ICCP]  [ALPH]  VP8 or VP8L  [EXIF] ...     the extended one
// A chunk is a name, a length, its content, and a byte of padding if the length is odd. The image's own
// size counts, which must be that of VP8X.
// Errors: DataLoss (broken, truncated), InvalidArgument (animated), for the caller to put the name in
// front. Source: RFC 9649 (container, lossless), RFC 6386, section 9.1 (lossy).
#ifndef RINGTAIL_DATA_DECODING_WEBP_HEADER_H_
#define RINGTAIL_DATA_DECODING_WEBP_HEADER_H_

#include <cstddef>
#include <span>

#include "core/status.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

StatusOr<ImageHeader> ParseWebpHeader(std::span<const std::byte> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_WEBP_HEADER_H_
