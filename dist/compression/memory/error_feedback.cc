#include "dist/compression/memory/error_feedback.h"

#include <cmath>

#include "core/check.h"
#include "core/sum_of_squares.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {

void ErrorFeedback::Encode(const Codec& codec, const GradientShape& shape,
                           const CodecMoment& moment, std::span<const float> gradient,
                           int64_t offset, std::span<std::byte> payload) {
  codec.EncodeWithFeedback(shape, moment, gradient, residual_.subspan(offset, gradient.size()),
                           payload);
}

std::span<const float> ErrorFeedback::Add(std::span<const float> gradient) {
  RT_CHECK(gradient.size() == residual_.size(), "a residual has the elements of its gradient");
  RT_KERNEL(AddTo)(gradient.data(), std::ssize(gradient), residual_.data());
  return residual_;
}

void ErrorFeedback::Sent(std::span<const float> decoded, float scale) {
  for (size_t i = 0; i < residual_.size(); ++i) residual_[i] -= scale * decoded[i];
}

double ErrorFeedback::Norm() const { return std::sqrt(SumOfSquares(residual_)); }

}  // namespace ringtail
