#include "dist/compression/codecs/one_bit_codec.h"

#include <algorithm>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/bit_planes.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = 512;

int64_t MeanBytes(int64_t elements) { return 8 * BlocksOf(elements, kBlock); }

float Mean(double sum, int64_t n) { return n == 0 ? 0 : ToScale(sum / static_cast<double>(n)); }

struct Means {
  float positive = 0, negative = 0;
};

// `sums` are those of the block. Writes the signs.
Means EncodeBlock(const float* block, const SignedSums& sums, int64_t n, uint8_t* signs) {
  const int64_t negatives = RT_KERNEL(PackSigns)(block, n, signs);
  Means means{.positive = Mean(sums.positive, n - negatives),
              .negative = Mean(-sums.negative, negatives)};
  if (!IsNumber(means.positive)) means.negative = means.positive;
  if (!IsNumber(means.negative)) means.positive = means.negative;
  return means;
}

void AddBlock(const Means& means, const uint8_t* signs, int64_t n, float scale, float* sum) {
  RT_KERNEL(AddSigns)(signs, n, scale * means.positive, -scale * means.negative, sum);
}

// Calls encode(begin, n, signs), which returns the means of a block, for every block and writes
// them.
template <typename Encode>
void ForBlocks(int64_t elements, std::span<std::byte> payload, const Encode& encode) {
  uint8_t* const signs = BytesAt(payload, MeanBytes(elements), BytesOfBits(elements)).data();
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const Means means = encode(begin, std::min(kBlock, elements - begin), signs + begin / 8);
    StoreFloat(means.positive, payload, begin / kBlock * 2);
    StoreFloat(means.negative, payload, begin / kBlock * 2 + 1);
  }
}

}  // namespace

std::string OneBitCodec::Describe() const { return "1 bit, two means per 512"; }

int64_t OneBitCodec::PayloadBytes(const EncodeContext& context) const {
  return MeanBytes(context.shape.elements()) + BytesOfBits(context.shape.elements());
}

void OneBitCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                         std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  ForBlocks(context.shape.elements(), payload, [&](int64_t begin, int64_t n, uint8_t* signs) {
    const float* const block = gradient.data() + begin;
    return EncodeBlock(block, RT_KERNEL(SumBySign)(block, n), n, signs);
  });
}

// One pass: a block stays in the nearest cache until it is finished.
void OneBitCodec::EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                                     std::span<float> residual,
                                     std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  ForBlocks(context.shape.elements(), payload, [&](int64_t begin, int64_t n, uint8_t* signs) {
    float* const block = residual.data() + begin;
    const SignedSums sums = RT_KERNEL(AddAndSumBySign)(gradient.data() + begin, n, block);
    const Means means = EncodeBlock(block, sums, n, signs);
    AddBlock(means, signs, n, -1, block);
    return means;
  });
}

Status OneBitCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                              float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const int64_t elements = context.shape.elements();
  const auto signs = BytesAt(payload, MeanBytes(elements), BytesOfBits(elements));
  if (!EndsClear(signs, elements)) return BadPayload(*this, "a bit after the last element");
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t n = std::min(kBlock, elements - begin);
    const Means means{.positive = LoadFloat(payload, begin / kBlock * 2),
                      .negative = LoadFloat(payload, begin / kBlock * 2 + 1)};
    if (!IsScale(means.positive) || !IsScale(means.negative) ||
        IsNumber(means.positive) != IsNumber(means.negative)) {
      return BadPayload(*this, "a mean that is none");
    }
    AddBlock(means, signs.data() + begin / 8, n, scale, sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
