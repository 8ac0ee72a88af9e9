#include "dist/compression/codecs/magnitude_levels.h"

#include <bit>
#include <cmath>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr uint16_t kNotANumber = 0x7fc0, kInfinity = 0x7f80;

uint16_t UpperHalf(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

float FromUpperHalf(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

}  // namespace

float MagnitudeRange::Least(float most, int bits) {
  return std::isfinite(most) ? std::ldexp(most, -(1 << bits)) : 0;
}

MagnitudeRange MagnitudeRange::Of(float least, float most) {
  if (!std::isfinite(most)) return {.least = kNotANumber, .most = kNotANumber};
  return {.least = UpperHalf(least), .most = UpperHalf(most)};
}

bool MagnitudeRange::IsValid(int bits) const {
  if (most == kNotANumber || most == 0) return least == most;
  return least > 0 && least <= most && most < kInfinity &&
         FromUpperHalf(least) >= Least(FromUpperHalf(most), bits);
}

MagnitudeLevels::MagnitudeLevels(const MagnitudeRange& range, int bits)
    : levels_(uint32_t{1} << bits) {
  RT_CHECK(bits >= 1 && bits <= kMostBits, "codes have 1 to 3 bits");
  const double least = double{FromUpperHalf(range.least)};
  double ratio = range.most > 0 ? double{FromUpperHalf(range.most)} / least : 1;
  for (int i = 0; i < bits; ++i) ratio = std::sqrt(ratio);
  const double middle = std::sqrt(ratio);
  double begin = least;
  for (uint32_t level = 0; level < levels_; ++level, begin *= ratio) {
    begin_[level] = begin;
    decoded_[level] = static_cast<float>(begin * middle);
  }
}

uint32_t MagnitudeLevels::CodeOf(float magnitude) const {
  uint32_t code = 0;
  while (code + 1 < levels_ && double{magnitude} >= begin_[code + 1]) ++code;
  return code;
}

}  // namespace ringtail
