#include "dist/compression/codecs/two_bit_codec.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/codecs/ternary_payload.h"
#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/sums.h"

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

float TwoBitCodec::AdaptiveThreshold(double sum_of_magnitudes, int64_t n) const {
  return n == 0 ? 0 : ToScale(options_.factor * (sum_of_magnitudes / static_cast<double>(n)));
}

float TwoBitCodec::FixedThreshold(std::span<const float> gradient,
                                  const CodecMoment& moment) const {
  if (gradient.empty()) return 0;
  // NaN is neither above nor below a threshold: unless it is looked for, nobody would see it.
  const double largest =
      std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(gradient.data(), std::ssize(gradient)));
  return ToScale(std::isfinite(largest) ? GivenThreshold(moment) : largest);
}

void TwoBitCodec::Encode(const GradientShape& shape, const CodecMoment& moment,
                         std::span<const float> gradient, std::span<std::byte> payload) const {
  CheckEncode(*this, shape, moment, gradient, payload);
  const int64_t n = shape.elements();
  const float threshold = options_.rule == TwoBitOptions::Rule::kFixed
                              ? FixedThreshold(gradient, moment)
                              : AdaptiveThreshold(RT_KERNEL(SumAbs)(gradient.data(), n), n);
  const TernaryPlanes planes = BeginTernary(threshold, n, payload);
  if (!(threshold > 0)) return;
  RT_KERNEL(PackBeyond)
  (gradient.data(), n, threshold, planes.plus.data(), planes.minus.data());
}

// Two passes: one that adds and finds the threshold, and one that encodes and takes away.
void TwoBitCodec::EncodeWithFeedback(const GradientShape& shape, const CodecMoment& moment,
                                     std::span<const float> gradient, std::span<float> residual,
                                     std::span<std::byte> payload) const {
  // A given threshold has no sum to be found with the addition.
  if (options_.rule == TwoBitOptions::Rule::kFixed) {
    return Codec::EncodeWithFeedback(shape, moment, gradient, residual, payload);
  }
  CheckEncode(*this, shape, moment, gradient, payload);
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  const int64_t n = shape.elements();
  const float threshold =
      AdaptiveThreshold(RT_KERNEL(AddAndSumAbs)(gradient.data(), n, residual.data()), n);
  const TernaryPlanes planes = BeginTernary(threshold, n, payload);
  if (!(threshold > 0)) return TakeAway(shape, moment, payload, residual);
  RT_KERNEL(TakeBeyond)
  (residual.data(), n, threshold, planes.plus.data(), planes.minus.data());
}

Status TwoBitCodec::DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                              std::span<const std::byte> payload, float scale,
                              std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, shape, moment, payload, sum));
  const float threshold = LoadFloat(payload, 0);
  if (options_.rule == TwoBitOptions::Rule::kFixed && IsNumber(threshold) && !sum.empty() &&
      threshold != ToScale(GivenThreshold(moment))) {
    return BadPayload(*this, "another threshold");
  }
  return AddTernaryPayload(*this, payload, scale, sum);
}

}  // namespace ringtail
