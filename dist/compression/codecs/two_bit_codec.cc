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
  const double given = fixed() ? options.threshold : options.factor;
  RT_CHECK(given > 0 && std::isfinite(given), "a threshold is above 0");
  RT_CHECK(!fixed() || ToScale(given) > 0, "a fixed threshold must be a scale (payload.h)");
}

std::string TwoBitCodec::Describe() const {
  if (fixed()) {
    return fmt::format("2 bits, threshold {}", options_.threshold);
  }
  return fmt::format("2 bits, threshold {} mean|g|", options_.factor);
}

int64_t TwoBitCodec::PayloadBytes(const EncodeContext& context) const {
  return TernaryBytes(context.shape.elements());
}

float TwoBitCodec::AdaptiveThreshold(double sum_of_magnitudes, int64_t n) const {
  return n == 0 ? 0 : ToScale(options_.factor * (sum_of_magnitudes / static_cast<double>(n)));
}

float TwoBitCodec::FixedThreshold(std::span<const float> gradient,
                                  const EncodeContext& context) const {
  if (gradient.empty()) return 0;
  // NaN is neither above nor below a threshold: without a search it would go unnoticed.
  const double largest =
      std::bit_cast<float>(RT_KERNEL(MaxMagnitudeBits)(gradient.data(), std::ssize(gradient)));
  return ToScale(std::isfinite(largest) ? GivenThreshold(context) : largest);
}

void TwoBitCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                         std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t n = context.shape.elements();
  const float threshold = fixed() ? FixedThreshold(gradient, context)
                                  : AdaptiveThreshold(RT_KERNEL(SumAbs)(gradient.data(), n), n);
  const TernaryPlanes planes = BeginTernary(threshold, n, payload);
  if (!(threshold > 0)) return;
  RT_KERNEL(PackBeyond)
  (gradient.data(), n, threshold, planes.plus.data(), planes.minus.data());
}

// Two passes: one adds and finds the threshold, the other encodes and subtracts.
void TwoBitCodec::EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                                     std::span<float> residual,
                                     std::span<std::byte> payload) const {
  // A fixed threshold needs no sum, so there is no pass to save.
  if (fixed()) {
    return Codec::EncodeWithFeedback(context, gradient, residual, payload);
  }
  CheckEncode(*this, context, gradient, payload);
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  const int64_t n = context.shape.elements();
  const float threshold =
      AdaptiveThreshold(RT_KERNEL(AddAndSumAbs)(gradient.data(), n, residual.data()), n);
  const TernaryPlanes planes = BeginTernary(threshold, n, payload);
  if (!(threshold > 0)) return Subtract(context, payload, residual);
  RT_KERNEL(SubtractBeyond)
  (residual.data(), n, threshold, planes.plus.data(), planes.minus.data());
}

Status TwoBitCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                              float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const float threshold = LoadFloat(payload, 0);
  if (fixed() && IsNumber(threshold) && !sum.empty() &&
      threshold != ToScale(GivenThreshold(context))) {
    return BadPayload(*this, "another threshold");
  }
  return AddTernaryPayload(*this, payload, scale, sum);
}

}  // namespace ringtail
