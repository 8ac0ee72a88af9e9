#include "dist/compression/codecs/cast_codec.h"

#include <fmt/format.h>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {

CastCodec::CastCodec(const CastOptions& options) : options_(options) {
  RT_CHECK(options.samples > 0, "a step has samples");
}

std::string CastCodec::Describe() const {
  if (options_.format == CastFormat::kBf16) return "bf16";
  return fmt::format("fp16 of gradient / {}", options_.samples);
}

int64_t CastCodec::PayloadBytes(const GradientShape& shape, const CodecMoment& /*moment*/) const {
  return 2 * shape.elements();
}

void CastCodec::Encode(const GradientShape& shape, const CodecMoment& moment,
                       std::span<const float> gradient, std::span<std::byte> payload) const {
  CheckEncode(*this, shape, moment, gradient, payload);
  auto* const halves = reinterpret_cast<uint16_t*>(payload.data());
  if (options_.format == CastFormat::kBf16) {
    RT_KERNEL(ToBf16)(gradient.data(), shape.elements(), halves);
  } else {
    const auto factor = static_cast<float>(1 / Samples(moment));
    RT_KERNEL(ToFp16)(gradient.data(), shape.elements(), factor, halves);
  }
}

Status CastCodec::DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                            std::span<const std::byte> payload, float scale,
                            std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, shape, moment, payload, sum));
  const auto* const halves = reinterpret_cast<const uint16_t*>(payload.data());
  if (options_.format == CastFormat::kBf16) {
    RT_KERNEL(AddBf16)(halves, shape.elements(), scale, sum.data());
  } else {
    const auto factor = static_cast<float>(scale * Samples(moment));
    RT_KERNEL(AddFp16)(halves, shape.elements(), factor, sum.data());
  }
  return OkStatus();
}

}  // namespace ringtail
