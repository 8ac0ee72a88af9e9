#include "dist/compression/codecs/codec.h"

#include <fmt/format.h>

#include <vector>

#include "core/check.h"
#include "core/kernels/add.h"

namespace ringtail {

void Codec::EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                               std::span<float> residual, std::span<std::byte> payload) const {
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  RT_KERNEL(AddFloats)(gradient.data(), std::ssize(gradient), residual.data());
  Encode(context, residual, payload);
  Subtract(context, payload, residual);
}

void Codec::Subtract(const EncodeContext& context, std::span<const std::byte> payload,
                     std::span<float> residual) const {
  const Status status = DecodeAdd(context, payload, -1, residual);
  RT_CHECK(status.ok(), status.ToString());
}

Status Codec::DecodeSum(const EncodeContext& context,
                        std::span<const std::span<const std::byte>> payloads,
                        std::span<float> sum) const {
  EncodeContext of_rank = context;
  for (size_t rank = 0; rank < payloads.size(); ++rank) {
    of_rank.rank = static_cast<uint32_t>(rank);
    Status status = DecodeAdd(of_rank, payloads[rank], 1, sum);
    if (!status.ok()) return status.Annotate(fmt::format("rank {}", rank));
  }
  return OkStatus();
}

void Codec::ForEachSent(const EncodeContext& context, std::span<const std::byte> payload,
                        const VisitSent& visit) const {
  static thread_local std::vector<float> decoded;
  decoded.assign(context.shape.elements(), 0.0F);
  const Status status = DecodeAdd(context, payload, 1, decoded);
  RT_CHECK(status.ok(), status.ToString());
  for (int64_t i = 0; i < std::ssize(decoded); ++i) {
    if (decoded[i] != 0) visit(i, decoded[i]);
  }
}

}  // namespace ringtail
