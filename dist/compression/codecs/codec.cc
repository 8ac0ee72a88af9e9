#include "dist/compression/codecs/codec.h"

#include <fmt/format.h>

#include "core/check.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {

void Codec::EncodeWithFeedback(const GradientShape& shape, const CodecMoment& moment,
                               std::span<const float> gradient, std::span<float> residual,
                               std::span<std::byte> payload) const {
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  RT_KERNEL(AddTo)(gradient.data(), std::ssize(gradient), residual.data());
  Encode(shape, moment, residual, payload);
  TakeAway(shape, moment, payload, residual);
}

void Codec::TakeAway(const GradientShape& shape, const CodecMoment& moment,
                     std::span<const std::byte> payload, std::span<float> residual) const {
  const Status status = DecodeAdd(shape, moment, payload, -1, residual);
  RT_CHECK(status.ok(), status.ToString());
}

Status Codec::DecodeSum(const GradientShape& shape, const CodecMoment& moment,
                        std::span<const std::span<const std::byte>> payloads,
                        std::span<float> sum) const {
  CodecMoment of_rank = moment;
  for (size_t rank = 0; rank < payloads.size(); ++rank) {
    of_rank.rank = static_cast<uint32_t>(rank);
    Status status = DecodeAdd(shape, of_rank, payloads[rank], 1, sum);
    if (!status.ok()) return status.Annotate(fmt::format("rank {}", rank));
  }
  return OkStatus();
}

}  // namespace ringtail
