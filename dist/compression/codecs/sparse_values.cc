#include "dist/compression/codecs/sparse_values.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "dist/compression/codecs/bit_stream.h"
#include "dist/compression/codecs/magnitude.h"
#include "dist/compression/codecs/magnitude_levels.h"
#include "dist/compression/codecs/payload.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte by byte");

constexpr float kSmallest = 0x1p-100F;  // as a scale (payload.h)
constexpr uint32_t kSignBit = uint32_t{1} << 31;

// Of a level's code; 0: the format has no levels.
int LevelBits(ValueFormat format) {
  if (format == ValueFormat::kLevels4) return 2;
  return format == ValueFormat::kLevels8 ? 3 : 0;
}

float Absolute(float value) { return std::bit_cast<float>(Magnitude(value)); }

void WriteLevels(std::span<const float> values, int bits, std::span<std::byte> to) {
  if (values.empty()) return;
  uint32_t least = UINT32_MAX, most = 0;
  for (const float value : values) {
    least = std::min(least, Magnitude(value));
    most = std::max(most, Magnitude(value));
  }
  const auto range = MagnitudeRange::Of(std::bit_cast<float>(least), std::bit_cast<float>(most));
  std::memcpy(to.data(), &range, sizeof(range));
  const MagnitudeLevels levels(range, bits);
  BitWriter codes(to.subspan(sizeof(range)));
  for (const float value : values) {
    const bool negative = (std::bit_cast<uint32_t>(value) & kSignBit) != 0;
    codes.Append((negative ? 1 : 0) | levels.CodeOf(Absolute(value)) << 1, 1 + bits);
  }
}

Status ReadLevels(std::span<const std::byte> from, int bits, std::span<float> values) {
  MagnitudeRange range;
  if (!from.empty()) std::memcpy(&range, from.data(), sizeof(range));
  if (!range.IsValid(bits) || (range.most == 0) != values.empty()) {
    return DataLoss("the magnitudes of a sparse gradient have no range that is one");
  }
  if (values.empty()) return OkStatus();
  const MagnitudeLevels levels(range, bits);
  BitReader codes(from.subspan(sizeof(range)));
  for (float& value : values) {
    const uint32_t code = codes.Take(1 + bits);
    value = (code & 1) != 0 ? -levels[code >> 1] : levels[code >> 1];
  }
  return OkStatus();
}

}  // namespace

const char* ValueFormatName(ValueFormat format) {
  switch (format) {
    case ValueFormat::kFloat:
      return "f32";
    case ValueFormat::kHalf:
      return "f16";
    case ValueFormat::kBfloat16:
      return "bf16";
    case ValueFormat::kLevels4:
      return "4 levels";
    case ValueFormat::kLevels8:
      return "8 levels";
  }
  RT_CHECK(false, "every format has a name");
}

int64_t SparseValueBytes(ValueFormat format, int64_t capacity) {
  if (capacity == 0) return 0;
  const int bits = LevelBits(format);
  if (bits > 0) return sizeof(MagnitudeRange) + BytesOfBits(capacity * (1 + bits));
  return capacity * (format == ValueFormat::kFloat ? 4 : 2);
}

uint32_t LeastSent(ValueFormat format, std::span<const float> a, std::span<const int32_t> places) {
  float least = kSmallest;
  if (const int bits = LevelBits(format); bits > 0) {
    uint32_t most = 0;
    for (const int32_t place : places) most = std::max(most, Magnitude(a[place]));
    least = std::max(least, MagnitudeRange::Least(std::bit_cast<float>(most), bits));
  }
  return Magnitude(least);
}

void WriteValues(ValueFormat format, std::span<const float> values, std::span<std::byte> to) {
  const int64_t n = std::ssize(values);
  auto* const halves = reinterpret_cast<uint16_t*>(to.data());
  switch (format) {
    case ValueFormat::kFloat:
      if (n > 0) std::memcpy(to.data(), values.data(), values.size_bytes());
      break;
    case ValueFormat::kHalf:
      RT_KERNEL(ToFp16)(values.data(), n, 1, halves);
      break;
    case ValueFormat::kBfloat16:
      RT_KERNEL(ToBf16)(values.data(), n, halves);
      break;
    case ValueFormat::kLevels4:
    case ValueFormat::kLevels8:
      WriteLevels(values, LevelBits(format), to);
      break;
  }
}

Status ReadValues(ValueFormat format, std::span<const std::byte> from, std::span<float> values) {
  const int64_t n = std::ssize(values);
  std::ranges::fill(values, 0.0F);
  const auto* const halves = reinterpret_cast<const uint16_t*>(from.data());
  int64_t used = 2 * n;
  switch (format) {
    case ValueFormat::kFloat:
      if (n > 0) std::memcpy(values.data(), from.data(), values.size_bytes());
      used = 4 * n;
      break;
    case ValueFormat::kHalf:
      RT_KERNEL(AddFp16)(halves, n, 1, values.data());
      break;
    case ValueFormat::kBfloat16:
      RT_KERNEL(AddBf16)(halves, n, 1, values.data());
      break;
    case ValueFormat::kLevels4:
    case ValueFormat::kLevels8:
      RT_RETURN_IF_ERROR(ReadLevels(from, LevelBits(format), values));
      used = SparseValueBytes(format, n);
      break;
  }
  return ClearFrom(from, 8 * used) ? OkStatus()
                                   : DataLoss("a sparse gradient has more values than places");
}

}  // namespace ringtail
