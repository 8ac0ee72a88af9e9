#include "dist/compression/codecs/cast_codec.h"

#include <fmt/format.h>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {

CastCodec::CastCodec(const CastOptions& options) : options_(options) {
  RT_CHECK(options.samples > 0, "a step has at least one sample");
}

std::string CastCodec::Describe() const {
  if (options_.format == CastFormat::kBf16) return "bf16";
  return fmt::format("fp16 of gradient / {}", options_.samples);
}

int64_t CastCodec::PayloadBytes(const EncodeContext& context) const {
  return 2 * context.shape.elements();
}

void CastCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                       std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  auto* const halves = reinterpret_cast<uint16_t*>(payload.data());
  if (options_.format == CastFormat::kBf16) {
    RT_KERNEL(ToBf16)(gradient.data(), context.shape.elements(), halves);
  } else {
    const auto factor = static_cast<float>(1 / Samples(context));
    RT_KERNEL(ToFp16)(gradient.data(), context.shape.elements(), factor, halves);
  }
}

Status CastCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                            float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const auto* const halves = reinterpret_cast<const uint16_t*>(payload.data());
  if (options_.format == CastFormat::kBf16) {
    RT_KERNEL(AddBf16)(halves, context.shape.elements(), scale, sum.data());
  } else {
    const auto factor = static_cast<float>(scale * Samples(context));
    RT_KERNEL(AddFp16)(halves, context.shape.elements(), factor, sum.data());
  }
  return OkStatus();
}

}  // namespace ringtail
