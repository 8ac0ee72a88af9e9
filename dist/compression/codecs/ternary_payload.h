// The payload that two_bit_codec.h and terngrad_codec.h share: a size t, then the plane of the
// elements that are +t, then the plane of those that are -t (drawn there).
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_TERNARY_PAYLOAD_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_TERNARY_PAYLOAD_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

int64_t TernaryBytes(int64_t elements);

struct TernaryPlanes {
  std::span<uint8_t> plus, minus;
};
// Writes t, and zeros into the planes if t is 0 or not a number. Returns the planes.
TernaryPlanes BeginTernary(float size, int64_t elements, std::span<std::byte> payload);

// Checks the contents, then sum[i] += scale * (t, -t or 0). The caller has checked the size of
// `sum` and of the payload (CheckDecode).
Status AddTernaryPayload(const Codec& codec, std::span<const std::byte> payload, float scale,
                         std::span<float> sum);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_TERNARY_PAYLOAD_H_
