#include "dist/compression/codecs/linear_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/levels.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kBlockOfEightBits = 1024, kBlockOfFourBits = 128;

float StepOf(const float* block, int64_t n, int most) {
  return ToScale(std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(block, n)) / double(most));
}

}  // namespace

LinearCodec::LinearCodec(const LinearOptions& options)
    : bits_(options.bits),
      most_(bits_ == 8 ? 127 : 7),
      block_(bits_ == 8 ? kBlockOfEightBits : kBlockOfFourBits) {
  RT_CHECK(bits_ == 8 || bits_ == 4, "codes have 8 or 4 bits");
}

std::string LinearCodec::Describe() const { return fmt::format("{} bits, linear", bits_); }

int64_t LinearCodec::ScaleBytes(int64_t elements) const { return 4 * BlocksOf(elements, block_); }

int64_t LinearCodec::PayloadBytes(const EncodeContext& context) const {
  const int64_t elements = context.shape.elements();
  return ScaleBytes(elements) + BytesOfBits(elements * bits_);
}

void LinearCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                         std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t elements = context.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += block_) {
    const float* const block = gradient.data() + begin;
    const int64_t n = std::min(block_, elements - begin), bytes = BytesOfBits(n * bits_);
    const float step = StepOf(block, n, most_);
    StoreFloat(step, payload, begin / block_);
    int8_t codes[kBlockOfEightBits];
    std::fill_n(codes, n + n % 2, int8_t{0});
    if (step > 0) RT_KERNEL(RoundToCodes)(block, n, 1 / step, codes);
    uint8_t* const to = BytesAt(payload, ScaleBytes(elements) + begin * bits_ / 8, bytes).data();
    if (bits_ == 8) {
      std::memcpy(to, codes, static_cast<size_t>(bytes));
    } else {
      RT_KERNEL(PackNibbles)(codes, 2 * bytes, to);
    }
  }
}

Status LinearCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                              float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const int64_t elements = context.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += block_) {
    const int64_t n = std::min(block_, elements - begin), bytes = BytesOfBits(n * bits_);
    const float step = LoadFloat(payload, begin / block_);
    if (!IsScale(step)) return BadPayload(*this, "a scale that is none");
    const uint8_t* const from =
        BytesAt(payload, ScaleBytes(elements) + begin * bits_ / 8, bytes).data();
    int8_t unpacked[kBlockOfFourBits];
    const auto* codes = reinterpret_cast<const int8_t*>(from);
    if (bits_ == 4) {
      RT_KERNEL(UnpackNibbles)(from, 2 * bytes, unpacked);
      if (n % 2 == 1 && unpacked[n] != 0) return BadPayload(*this, "a code after the last element");
      codes = unpacked;
    }
    if (RT_KERNEL(MaxCode)(codes, n) > most_)
      return BadPayload(*this, fmt::format("code {}", -most_ - 1));
    RT_KERNEL(AddCodes)(codes, n, scale * step, sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
