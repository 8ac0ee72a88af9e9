// MagnitudeLevels: magnitudes of one narrow range in a few bits, on a logarithmic scale.
//
//   least                         most           r = (most / least)^(1 / L), L = 2^bits = 4
//     |-----|-------|-----------|
//     code 0   1         2          3            decoded: least r^(code + 1/2)
//
// The range ends at most / 2^L, so that r is at most 2 and a decoded magnitude is wrong by a factor
// of sqrt(2) at most: what is sent always shrinks a residual (memory/error_feedback.h).
// Its ends are stored as the upper halves of floats. NaN as both says that an element was not
// finite, and everything decodes to NaN; 0 as both, that there are no elements.
// The same bits on every machine: only products, quotients and square roots, which IEEE 754 rounds
// exactly.
// Thread-safety: const, any number of threads.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_LEVELS_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_LEVELS_H_

#include <array>
#include <cstdint>

namespace ringtail {

struct MagnitudeRange {
  uint16_t least = 0, most = 0;

  // The smallest magnitude of a range that ends at `most`; 0 if that is not finite.
  static float Least(float most, int bits);
  // Of magnitudes from `least` >= Least(most), which is a normal number.
  static MagnitudeRange Of(float least, float most);
  // Whether Of can have made it for codes of `bits`.
  bool IsValid(int bits) const;
};

class MagnitudeLevels {
 public:
  static constexpr int kMostBits = 3;

  // `bits`: of a code, 1 to kMostBits.
  MagnitudeLevels(const MagnitudeRange& range, int bits);

  uint32_t CodeOf(float magnitude) const;
  float operator[](uint32_t code) const { return decoded_[code]; }

 private:
  static constexpr int kMostLevels = 1 << kMostBits;

  const uint32_t levels_;
  std::array<double, kMostLevels> begin_{};  // of each level
  std::array<float, kMostLevels> decoded_{};
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_LEVELS_H_
