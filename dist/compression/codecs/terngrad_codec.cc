#include "dist/compression/codecs/terngrad_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/codecs/ternary_payload.h"
#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/philox.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kChunk = 1024;  // elements whose draws stay in the nearest cache

float SizeOf(std::span<const float> gradient, double clip) {
  const auto n = std::ssize(gradient);
  const double largest = std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(gradient.data(), n));
  if (clip == 0 || n == 0 || !std::isfinite(largest)) return ToScale(largest);
  const double sum = RT_KERNEL(SumSquares)(gradient.data(), n);
  return ToScale(std::min(largest, clip * std::sqrt(sum / static_cast<double>(n))));
}

}  // namespace

TernGradCodec::TernGradCodec(const TernGradOptions& options) : clip_(options.clip) {
  RT_CHECK(clip_ >= 0, "a number of sigmas");
}

std::string TernGradCodec::Describe() const {
  if (clip_ == 0) return "TernGrad, not clipped";
  return fmt::format("TernGrad, clipped at {} sigma", clip_);
}

int64_t TernGradCodec::PayloadBytes(const EncodeContext& context) const {
  return TernaryBytes(context.shape.elements());
}

void TernGradCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                           std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t elements = context.shape.elements();
  const float size = SizeOf(gradient, clip_);
  const TernaryPlanes planes = BeginTernary(size, elements, payload);
  if (!(size > 0)) return;
  const uint64_t key = DrawKey(context).bits();
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t n = std::min(kChunk, elements - begin);
    uint32_t words[kChunk];
    RT_KERNEL(PhiloxWords)(key, begin, BlocksOf(n, kPhiloxGroup) * kPhiloxGroup, words);
    RT_KERNEL(PackDrawn)
    (gradient.data() + begin, n, 1 / size, words, planes.plus.data() + begin / 8,
     planes.minus.data() + begin / 8);
  }
}

Status TernGradCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                                float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  return AddTernaryPayload(*this, payload, scale, sum);
}

}  // namespace ringtail
