#include "dist/compression/codecs/linear8_codec.h"

#include <algorithm>
#include <bit>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/levels.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int kMost = 127;

int64_t ScaleBytes(int64_t elements) { return 4 * BlocksOf(elements, kBlock); }

float StepOf(const float* block, int64_t n) {
  return ToScale(std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(block, n)) / double{kMost});
}

}  // namespace

std::string Linear8Codec::Describe() const { return "8 bits, linear"; }

int64_t Linear8Codec::PayloadBytes(const EncodeContext& context) const {
  return ScaleBytes(context.shape.elements()) + context.shape.elements();
}

void Linear8Codec::Encode(const EncodeContext& context, std::span<const float> gradient,
                          std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t elements = context.shape.elements();
  auto* const codes =
      reinterpret_cast<int8_t*>(BytesAt(payload, ScaleBytes(elements), elements).data());
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const float* const block = gradient.data() + begin;
    const int64_t n = std::min(kBlock, elements - begin);
    const float step = StepOf(block, n);
    StoreFloat(step, payload, begin / kBlock);
    if (step > 0) {
      RT_KERNEL(RoundToCodes)(block, n, 1 / step, codes + begin);
    } else {
      std::fill_n(codes + begin, n, int8_t{0});
    }
  }
}

Status Linear8Codec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                               float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const int64_t elements = context.shape.elements();
  const auto* const codes =
      reinterpret_cast<const int8_t*>(BytesAt(payload, ScaleBytes(elements), elements).data());
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t n = std::min(kBlock, elements - begin);
    const float step = LoadFloat(payload, begin / kBlock);
    if (!IsScale(step)) return BadPayload(*this, "a scale that is none");
    if (RT_KERNEL(MaxCode)(codes + begin, n) > kMost) return BadPayload(*this, "code -128");
    RT_KERNEL(AddCodes)(codes + begin, n, scale * step, sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
