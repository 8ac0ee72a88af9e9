#include "dist/compression/memory/error_feedback.h"

#include "core/check.h"
#include "core/kernels/add.h"

namespace ringtail {

void ErrorFeedback::Encode(const Codec& codec, const EncodeContext& context,
                           std::span<const float> gradient, int64_t offset,
                           std::span<std::byte> payload) {
  codec.EncodeWithFeedback(context, gradient, residual_.subspan(offset, gradient.size()), payload);
}

std::span<const float> ErrorFeedback::Add(std::span<const float> gradient) {
  RT_CHECK(gradient.size() == residual_.size(), "a residual has the elements of its gradient");
  RT_KERNEL(AddFloats)(gradient.data(), std::ssize(gradient), residual_.data());
  return residual_;
}

void ErrorFeedback::Sent(std::span<const float> decoded, float scale) {
  for (size_t i = 0; i < residual_.size(); ++i) residual_[i] -= scale * decoded[i];
}

}  // namespace ringtail
