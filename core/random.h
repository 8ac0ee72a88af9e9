// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw is a pure function of
// a key and a counter: no state, no order, the same on every machine and for any number of threads.
//
//   RngKey key = RngKey(seed).With(kDropoutStream).With(step).With(layer);
//   Rng rng(key.With(sample));  float u = rng.Uniform();
//
// Streams keep the uses of one seed apart. Thread-safety: value types.
#ifndef RINGTAIL_CORE_RANDOM_H_
#define RINGTAIL_CORE_RANDOM_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace ringtail {

// One per use of the run's seed.
enum RngStream : uint64_t {
  kInitStream = 1,
  kShuffleStream = 2,
  kAugmentStream = 3,
  kDropoutStream = 4,
  kSplitStream = 5,
  kSynthesizeStream = 6,
  kCompressionStream = 7,
  kEmulationStream = 8,
  kMixStream = 9,
  kShardStream = 10,
  kWakeStream = 11,
  kTestStream = 99,
};

// 4 x 32 random bits for a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, uint64_t key);

// Two independent draws from N(0, 1), from 2 x 32 random bits. Source: Box & Muller 1958.
struct NormalPair {
  double first, second;
};
NormalPair BoxMuller(uint32_t bits0, uint32_t bits1);

// A 64-bit key, mixed from a seed and any number of words, order-sensitive.
class RngKey {
 public:
  explicit RngKey(uint64_t seed) : bits_(seed) {}
  RngKey With(uint64_t word) const;
  RngKey With(std::string_view text) const;
  uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_;
};

// A sequence of draws under one key.
class Rng {
 public:
  explicit Rng(RngKey key) : key_(key.bits()) {}
  uint32_t Bits();                       // 32 random bits
  uint64_t Below(uint64_t n);            // 0 .. n-1, unbiased; n >= 1
  float Uniform();                       // [0, 1), 24 bits
  float Uniform(float low, float high);  // [low, high)
  float Normal();                        // N(0, 1), Box-Muller in double

 private:
  uint64_t key_, counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_RANDOM_H_
