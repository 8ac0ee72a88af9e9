#include "dist/compression/error_feedback.h"

#include <cmath>

#include "core/check.h"
#include "core/sum_of_squares.h"

namespace ringtail {

std::span<const float> ErrorFeedback::Add(std::span<const float> gradient) {
  RT_CHECK(gradient.size() == residual_.size(), "a residual has the elements of its gradient");
  for (size_t i = 0; i < residual_.size(); ++i) residual_[i] += gradient[i];
  return residual_;
}

Status ErrorFeedback::Sent(const Codec& codec, const GradientShape& shape,
                           const CodecMoment& moment, std::span<const std::byte> payload,
                           int64_t offset) {
  return codec.DecodeAdd(shape, moment, payload, -1, residual_.subspan(offset, shape.elements()));
}

void ErrorFeedback::Sent(std::span<const float> decoded, float scale) {
  for (size_t i = 0; i < residual_.size(); ++i) residual_[i] -= scale * decoded[i];
}

double ErrorFeedback::Norm() const { return std::sqrt(SumOfSquares(residual_)); }

void ErrorFeedback::Encode(const Codec& codec, const GradientShape& shape,
                           const CodecMoment& moment, std::span<std::byte> payload) {
  codec.Encode(shape, moment, residual_, payload);
  const Status status = Sent(codec, shape, moment, payload, 0);
  RT_CHECK(status.ok(), status.ToString());  // it has just written that payload
}

}  // namespace ringtail
