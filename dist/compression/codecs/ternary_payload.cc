#include "dist/compression/codecs/ternary_payload.h"

#include <algorithm>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/bit_planes.h"

namespace ringtail {

int64_t TernaryBytes(int64_t elements) { return 4 + 2 * BytesOfBits(elements); }

TernaryPlanes BeginTernary(float size, int64_t elements, std::span<std::byte> payload) {
  StoreFloat(size, payload, 0);
  const int64_t bytes = BytesOfBits(elements);
  if (!(size > 0)) std::ranges::fill(payload.subspan(4), std::byte{0});
  return {.plus = BytesAt(payload, 4, bytes), .minus = BytesAt(payload, 4 + bytes, bytes)};
}

Status AddTernaryPayload(const Codec& codec, std::span<const std::byte> payload, float scale,
                         std::span<float> sum) {
  const int64_t elements = std::ssize(sum), bytes = BytesOfBits(elements);
  const float size = LoadFloat(payload, 0);
  const auto plus = BytesAt(payload, 4, bytes), minus = BytesAt(payload, 4 + bytes, bytes);
  if (!IsScale(size)) return BadPayload(codec, "a size that is none");
  if (!EndsClear(plus, elements) || !EndsClear(minus, elements)) {
    return BadPayload(codec, "a bit after the last element");
  }
  if (!RT_KERNEL(Disjoint)(plus.data(), minus.data(), bytes)) {
    return BadPayload(codec, "an element that is both plus and minus");
  }
  if (IsNumber(size)) {
    RT_KERNEL(AddTernary)(plus.data(), minus.data(), elements, scale * size, sum.data());
  } else {
    AddNotANumber(sum);
  }
  return OkStatus();
}

}  // namespace ringtail
