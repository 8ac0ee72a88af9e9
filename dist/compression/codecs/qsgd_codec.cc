#include "dist/compression/codecs/qsgd_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/levels.h"
#include "dist/compression/kernels/philox.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

constexpr int64_t kBucket = 512;
constexpr int kMostLevels = 127, kMostLevelsOfFourBits = 7;

int64_t NormBytes(int64_t elements) { return 4 * BlocksOf(elements, kBucket); }

// `codes` has room for a whole bucket. Writes an even number of codes.
void Draw(const float* bucket, int64_t n, float norm, int levels, uint64_t key, int64_t first,
          int8_t* codes) {
  std::memset(codes, 0, kBucket);
  if (!(norm > 0)) return;
  uint32_t words[kBucket];
  RT_KERNEL(PhiloxWords)(key, first, BlocksOf(n, kPhiloxGroup) * kPhiloxGroup, words);
  RT_KERNEL(DrawCodes)(bucket, n, static_cast<float>(levels) / norm, levels, words, codes);
}

}  // namespace

QsgdCodec::QsgdCodec(const QsgdOptions& options)
    : bits_(options.levels <= kMostLevelsOfFourBits ? 4 : 8), levels_(options.levels) {
  RT_CHECK(levels_ >= 1 && levels_ <= kMostLevels, "QSGD's levels must fit into its codes");
}

std::string QsgdCodec::Describe() const {
  return fmt::format("QSGD, {} bits, {} levels", bits_, levels_);
}

int64_t QsgdCodec::PayloadBytes(const EncodeContext& context) const {
  return NormBytes(context.shape.elements()) + BytesOfBits(context.shape.elements() * bits_);
}

void QsgdCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                       std::span<std::byte> payload) const {
  CheckEncode(*this, context, gradient, payload);
  const int64_t elements = context.shape.elements();
  const uint64_t key = DrawKey(context).bits();
  for (int64_t begin = 0; begin < elements; begin += kBucket) {
    const float* const bucket = gradient.data() + begin;
    const int64_t n = std::min(kBucket, elements - begin);
    const float norm = ToScale(std::sqrt(RT_KERNEL(SumSquares)(bucket, n)));
    StoreFloat(norm, payload, begin / kBucket);
    int8_t codes[kBucket];
    Draw(bucket, n, norm, levels_, key, begin, codes);
    const int64_t bytes = BytesOfBits(n * bits_);
    uint8_t* const to = BytesAt(payload, NormBytes(elements) + begin * bits_ / 8, bytes).data();
    if (bits_ == 8) {
      std::memcpy(to, codes, static_cast<size_t>(bytes));
    } else {
      RT_KERNEL(PackNibbles)(codes, 2 * bytes, to);
    }
  }
}

Status QsgdCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                            float scale, std::span<float> sum) const {
  RT_RETURN_IF_ERROR(CheckDecode(*this, context, payload, sum));
  const int64_t elements = context.shape.elements();
  for (int64_t begin = 0; begin < elements; begin += kBucket) {
    const int64_t n = std::min(kBucket, elements - begin);
    const float norm = LoadFloat(payload, begin / kBucket);
    if (!IsScale(norm)) return BadPayload(*this, "a norm that is none");
    const int64_t bytes = BytesOfBits(n * bits_);
    const uint8_t* const from =
        BytesAt(payload, NormBytes(elements) + begin * bits_ / 8, bytes).data();
    int8_t codes[kBucket];
    if (bits_ == 8) {
      std::memcpy(codes, from, static_cast<size_t>(bytes));
    } else {
      RT_KERNEL(UnpackNibbles)(from, 2 * bytes, codes);
      if (n % 2 == 1 && codes[n] != 0) return BadPayload(*this, "a code after the last element");
    }
    if (RT_KERNEL(MaxCode)(codes, n) > levels_)
      return BadPayload(*this, "a level above the highest");
    const float unit = scale * (norm / static_cast<float>(levels_));
    RT_KERNEL(AddCodes)(codes, n, unit, sum.data() + begin);
  }
  return OkStatus();
}

}  // namespace ringtail
