#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "core/philox_rounds.h"

namespace ringtail {
namespace {

// In the counter's third word: keeps keys made by With() apart from draws, which have 0 there.
constexpr uint32_t kKeyDomain = 0x52696e67;

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, uint64_t key) {
  auto& [c0, c1, c2, c3] = counter;
  PhiloxRounds(key, c0, c1, c2, c3);
  return counter;
}

NormalPair BoxMuller(uint32_t bits0, uint32_t bits1) {
  const double u = (bits0 + 1.0) * 0x1p-32;  // (0, 1]: the logarithm stays finite
  const double angle = 2 * std::numbers::pi * 0x1p-32 * bits1;
  const double radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

RngKey RngKey::With(uint64_t word) const {
  const auto r = Philox4x32(
      {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32), kKeyDomain, 0}, bits_);
  return RngKey(static_cast<uint64_t>(r[1]) << 32 | r[0]);
}

RngKey RngKey::With(std::string_view text) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char ch : text) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
  return With(hash);
}

uint32_t Rng::Bits() {
  if (used_ == 4) {
    block_ = Philox4x32(
        {static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0}, key_);
    ++counter_;
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t Rng::Below(uint64_t n) {
  RT_CHECK(n >= 1, "there is no number below 0");
  // Rejection: draws below `reject` would make small values likelier.
  const uint64_t reject = (0 - n) % n;
  while (true) {
    const uint64_t low = Bits();
    const uint64_t draw = static_cast<uint64_t>(Bits()) << 32 | low;
    if (draw >= reject) return draw % n;
  }
}

float Rng::Uniform() { return static_cast<float>(Bits() >> 8) * 0x1p-24f; }

float Rng::Uniform(float low, float high) {
  const float draw = low + (high - low) * Uniform();
  return draw < high ? draw : std::nextafter(high, low);  // the sum may round up to `high`
}

float Rng::Normal() {
  const uint32_t bits0 = Bits(), bits1 = Bits();
  return static_cast<float>(BoxMuller(bits0, bits1).first);
}

}  // namespace ringtail
