#include "dist/compression/codec.h"

#include <fmt/format.h>

namespace ringtail {

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
