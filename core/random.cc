#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace ringtail {
namespace {
// In the counter's third word: keeps keys made by With() apart from draws, which have 0 there.
constexpr uint32_t kKeyDomain = 0x52696e67;
}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  constexpr uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;  // multipliers
  constexpr uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;  // Weyl key increments
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k = {k[0] + kW0, k[1] + kW1};
  }
  return c;
}

RngKey RngKey::With(uint64_t word) const {
  const auto r =
      Philox4x32({static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32), kKeyDomain, 0},
                 {static_cast<uint32_t>(bits_), static_cast<uint32_t>(bits_ >> 32)});
  return RngKey(static_cast<uint64_t>(r[1]) << 32 | r[0]);
}

RngKey RngKey::With(std::string_view text) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char ch : text) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
  return With(hash);
}

uint32_t Rng::Bits() {
  if (used_ == 4) {
    block_ =
        Philox4x32({static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0},
                   {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
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
  const double u = (Bits() + 1.0) * 0x1p-32, v = Bits() * 0x1p-32;  // u in (0, 1]
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

}  // namespace ringtail
