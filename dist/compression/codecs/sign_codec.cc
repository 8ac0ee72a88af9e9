#include "dist/compression/codecs/sign_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kScaleBytes = 4;
constexpr int64_t kChunk = 4096;  // elements whose votes stay in the nearest cache

const uint8_t* SignsOf(std::span<const std::byte> payload) {
  return reinterpret_cast<const uint8_t*>(payload.data()) + kScaleBytes;
}

}  // namespace

SignCodec::SignCodec(const SignOptions& options) : majority_vote_(options.majority_vote) {}

std::string SignCodec::Describe() const {
  return majority_vote_ ? "sign, majority vote" : "sign, mean|g|";
}

int64_t SignCodec::PayloadBytes(const EncodeContext& context) const {
  return kScaleBytes + BytesOfBits(context.shape.elements());
}

void SignCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                       std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t n = context.shape.elements();
  const double sum = RT_KERNEL(SumAbs)(gradient.data(), n);
  StoreFloat(n == 0 ? 0 : ToScale(sum / static_cast<double>(n)), payload, 0);
  RT_KERNEL(PackSigns)
  (gradient.data(), n, BytesAt(payload, kScaleBytes, BytesOfBits(n)).data());
}

StatusOr<float> SignCodec::Check(const EncodeContext& context, std::span<const std::byte> payload,
                                 std::span<const float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const float scale = LoadFloat(payload, 0);
  if (!IsScale(scale)) return BadPayload(*this, "a scale that is none");
  if (!EndsClear({SignsOf(payload), payload.size() - kScaleBytes}, context.shape.elements())) {
    return BadPayload(*this, "a bit after the last element");
  }
  return scale;
}

Status SignCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                            float scale, std::span<float> sum) const {
  RT_ASSIGN_OR_RETURN(const float size, Check(context, payload, sum));
  RT_KERNEL(AddSigns)
  (SignsOf(payload), context.shape.elements(), scale * size, -scale * size, sum.data());
  return OkStatus();
}

Status SignCodec::DecodeSum(const EncodeContext& context,
                            std::span<const std::span<const std::byte>> payloads,
                            std::span<float> sum) const {
  if (!majority_vote_) return Codec::DecodeSum(context, payloads, sum);
  double size = 0;  // the mean scale, counted once for each rank
  for (size_t rank = 0; rank < payloads.size(); ++rank) {
    const StatusOr<float> scale = Check(context, payloads[rank], sum);
    if (!scale.ok()) return scale.status().Annotate(fmt::format("rank {}", rank));
    size += *scale;
  }
  const int64_t elements = context.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t n = std::min(kChunk, elements - begin);
    float votes[kChunk] = {};
    for (const std::span<const std::byte> payload : payloads) {
      RT_KERNEL(AddSigns)(SignsOf(payload) + begin / 8, n, 1, -1, votes);
    }
    RT_KERNEL(AddVotes)(votes, n, static_cast<float>(size), sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
