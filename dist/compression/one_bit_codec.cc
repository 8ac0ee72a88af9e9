#include "dist/compression/one_bit_codec.h"

#include <algorithm>

#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/sums.h"
#include "dist/compression/payload.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = 512;

int64_t MeanBytes(int64_t elements) { return 8 * BlocksOf(elements, kBlock); }

float Mean(double sum, int64_t n) { return n == 0 ? 0 : ToScale(sum / static_cast<double>(n)); }

}  // namespace

std::string OneBitCodec::Describe() const { return "1 bit, two means per 512"; }

int64_t OneBitCodec::PayloadBytes(const GradientShape& shape, const CodecMoment& /*moment*/) const {
  return MeanBytes(shape.elements()) + BytesOfBits(shape.elements());
}

void OneBitCodec::Encode(const GradientShape& shape, const CodecMoment& moment,
                         std::span<const float> gradient, std::span<std::byte> payload) const {
  CheckEncode(*this, shape, moment, gradient, payload);
  const int64_t elements = shape.elements();
  uint8_t* const signs = BytesAt(payload, MeanBytes(elements), BytesOfBits(elements)).data();
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const float* const block = gradient.data() + begin;
    const int64_t n = std::min(kBlock, elements - begin);
    const int64_t negatives = RT_KERNEL(PackSigns)(block, n, signs + begin / 8);
    const SignedSums sums = RT_KERNEL(SumBySign)(block, n);
    float positive = Mean(sums.positive, n - negatives), negative = Mean(-sums.negative, negatives);
    if (!IsNumber(positive)) negative = positive;
    if (!IsNumber(negative)) positive = negative;
    StoreFloat(positive, payload, begin / kBlock * 2);
    StoreFloat(negative, payload, begin / kBlock * 2 + 1);
  }
}

Status OneBitCodec::DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                              std::span<const std::byte> payload, float scale,
                              std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, shape, moment, payload, sum));
  const int64_t elements = shape.elements();
  const auto signs = BytesAt(payload, MeanBytes(elements), BytesOfBits(elements));
  if (!EndsClear(signs, elements)) return BadPayload(*this, "an element behind the last");
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t n = std::min(kBlock, elements - begin);
    const float positive = LoadFloat(payload, begin / kBlock * 2);
    const float negative = LoadFloat(payload, begin / kBlock * 2 + 1);
    if (!IsScale(positive) || !IsScale(negative) || IsNumber(positive) != IsNumber(negative)) {
      return BadPayload(*this, "a mean that is none");
    }
    RT_KERNEL(AddSigns)
    (signs.data() + begin / 8, n, scale * positive, -scale * negative, sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
