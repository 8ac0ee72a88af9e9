#include "dist/compression/two_bit_codec.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/sums.h"
#include "dist/compression/payload.h"
#include "dist/compression/ternary_payload.h"

namespace ringtail {

TwoBitCodec::TwoBitCodec(const TwoBitOptions& options) : options_(options) {
  const double given =
      options.rule == TwoBitOptions::Rule::kFixed ? options.threshold : options.factor;
  RT_CHECK(given > 0 && std::isfinite(given), "a threshold is above 0");
  RT_CHECK(options.rule != TwoBitOptions::Rule::kFixed || ToScale(given) > 0,
           "a fixed threshold must be a scale (payload.h)");
}

std::string TwoBitCodec::Describe() const {
  if (options_.rule == TwoBitOptions::Rule::kFixed) {
    return fmt::format("2 bits, threshold {}", options_.threshold);
  }
  return fmt::format("2 bits, threshold {} mean|g|", options_.factor);
}

int64_t TwoBitCodec::PayloadBytes(const GradientShape& shape, const CodecMoment& /*moment*/) const {
  return TernaryBytes(shape.elements());
}

float TwoBitCodec::Threshold(std::span<const float> gradient) const {
  const int64_t n = std::ssize(gradient);
  if (n == 0) return 0;
  if (options_.rule == TwoBitOptions::Rule::kFixed) {
    // NaN is neither above nor below a threshold: unless it is looked for, nobody would see it.
    const double largest = std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(gradient.data(), n));
    return ToScale(std::isfinite(largest) ? options_.threshold : largest);
  }
  const double mean = RT_KERNEL(SumAbs)(gradient.data(), n) / static_cast<double>(n);
  return ToScale(options_.factor * mean);
}

void TwoBitCodec::Encode(const GradientShape& shape, const CodecMoment& moment,
                         std::span<const float> gradient, std::span<std::byte> payload) const {
  CheckEncode(*this, shape, moment, gradient, payload);
  const float threshold = Threshold(gradient);
  const TernaryPlanes planes = BeginTernary(threshold, shape.elements(), payload);
  if (!(threshold > 0)) return;
  RT_KERNEL(PackBeyond)
  (gradient.data(), shape.elements(), threshold, planes.plus.data(), planes.minus.data());
}

Status TwoBitCodec::DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                              std::span<const std::byte> payload, float scale,
                              std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, shape, moment, payload, sum));
  const float threshold = LoadFloat(payload, 0);
  if (options_.rule == TwoBitOptions::Rule::kFixed && IsNumber(threshold) && !sum.empty() &&
      threshold != ToScale(options_.threshold)) {
    return BadPayload(*this, "another threshold");
  }
  return AddTernaryPayload(*this, payload, scale, sum);
}

}  // namespace ringtail
