#include "dist/compression/sketches/random_k_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/random.h"
#include "dist/compression/codecs/largest.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

bool IsFinite(std::span<const float> values) {
  constexpr auto kInfinity = std::bit_cast<int32_t>(std::numeric_limits<float>::infinity());
  return values.empty() ||
         RT_KERNEL(MaxMagnitudeBits)(values.data(), std::ssize(values)) < kInfinity;
}

}  // namespace

RandomKSketch::RandomKSketch(const RandomKOptions& options, const GradientShape& shape)
    : options_(options), elements_(shape.elements()) {
  RT_CHECK(elements_ <= INT32_MAX, "places have 31 bits");
  places_.reserve(Floats(0));
  sum_.resize(Floats(0));
  drawn_.resize((elements_ + 63) / 64);
}

std::string RandomKSketch::Describe() const {
  return fmt::format("{:g}% at random places", options_.density * 100);
}

int64_t RandomKSketch::Floats(int) const { return ShareOf(options_.density, elements_); }

// Draws until there are k different places; if k is more than half of all, draws the others.
void RandomKSketch::DrawPlaces(const EncodeContext& context) {
  Rng random(RngKey(context.seed).With("random_k").With(context.step).With(context.parameter));
  std::fill(drawn_.begin(), drawn_.end(), 0);
  const int64_t wanted = Floats(0);
  const bool leave_out = wanted > elements_ / 2;
  for (int64_t left = leave_out ? elements_ - wanted : wanted; left > 0;) {
    const uint64_t place = random.Below(elements_), bit = uint64_t{1} << (place % 64);
    left -= (drawn_[place / 64] & bit) == 0 ? 1 : 0;
    drawn_[place / 64] |= bit;
  }
  places_.clear();
  for (int64_t word = 0; word < static_cast<int64_t>(drawn_.size()); ++word) {
    uint64_t bits = leave_out ? ~drawn_[word] : drawn_[word];
    for (; bits != 0; bits &= bits - 1) {
      const int64_t place = 64 * word + std::countr_zero(bits);
      if (place < elements_) places_.push_back(static_cast<int32_t>(place));
    }
  }
  RT_CHECK(static_cast<int64_t>(places_.size()) == wanted, "k places are drawn");
}

void RandomKSketch::Pack(int, const EncodeContext& context, std::span<const float> gradient,
                         std::span<float> floats) {
  DrawPlaces(context);
  // An element that is not finite may lie where nothing is drawn, but every rank must notice it in
  // this step.
  if (!IsFinite(gradient)) {
    std::fill(floats.begin(), floats.end(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  for (size_t i = 0; i < places_.size(); ++i) floats[i] = gradient[places_[i]];
}

void RandomKSketch::Take(int, const EncodeContext&, std::span<const float> sum) {
  std::copy(sum.begin(), sum.end(), sum_.begin());
}

void RandomKSketch::Unpack(const EncodeContext&, std::span<float> approximation) {
  std::fill(approximation.begin(), approximation.end(), 0.0f);
  for (size_t i = 0; i < places_.size(); ++i) approximation[places_[i]] = sum_[i];
}

}  // namespace ringtail
