#include "dist/compression/kernels/bit_planes.h"

#include "dist/compression/kernels/float_bits.h"
#include "dist/compression/kernels/lanes16.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

// `count` (1 to 16) bits into as many bytes as they need.
inline void StoreBits(uint32_t bits, int64_t count, uint8_t* to) {
  to[0] = static_cast<uint8_t>(bits);
  if (count > 8) to[1] = static_cast<uint8_t>(bits >> 8);
}

inline uint32_t Load16Bits(const uint8_t* from) {
  return from[0] | static_cast<uint32_t>(from[1]) << 8;
}

// A table, because SSE2 cannot shift each lane by a number of its own.
constexpr uint32_t kBit[16] = {1U << 0,  1U << 1,  1U << 2,  1U << 3, 1U << 4,  1U << 5,
                               1U << 6,  1U << 7,  1U << 8,  1U << 9, 1U << 10, 1U << 11,
                               1U << 12, 1U << 13, 1U << 14, 1U << 15};

inline void Add16Ternary(uint32_t plus, uint32_t minus, float value, float* sum) {
#pragma omp simd
  for (int j = 0; j < 16; ++j) {
    sum[j] += ((plus & kBit[j]) != 0 ? value : 0) - ((minus & kBit[j]) != 0 ? value : 0);
  }
}

// Calls group(x + i, i, count) for sixteen floats at a time, of which `count` are elements and the
// rest zeros.
template <typename Group>
inline void ForGroups(const float* x, int64_t n, Group group) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) group(x + i, i, 16);
  if (i == n) return;
  float rest[16] = {};
  for (int64_t j = 0; i + j < n; ++j) rest[j] = x[i + j];
  group(rest, i, n - i);
}

}  // namespace

int64_t PackSigns(const float* x, int64_t n, uint8_t* plane) {
  int64_t set = 0;
  ForGroups(x, n, [&](const float* group, int64_t i, int64_t count) {
    const uint32_t bits = SignBits(Load16(group));
    set += __builtin_popcount(bits);  // padding zeros have none
    StoreBits(bits, count, plane + i / 8);
  });
  return set;
}

void AddSigns(const uint8_t* plane, int64_t n, float if_clear, float if_set, float* sum) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint32_t bits = Load16Bits(plane + i / 8);
#pragma omp simd
    for (int j = 0; j < 16; ++j) sum[i + j] += (bits & kBit[j]) != 0 ? if_set : if_clear;
  }
  for (; i < n; ++i) sum[i] += (plane[i / 8] >> i % 8 & 1) != 0 ? if_set : if_clear;
}

void PackBeyond(const float* x, int64_t n, float threshold, uint8_t* plus, uint8_t* minus) {
  ForGroups(x, n, [&](const float* group, int64_t i, int64_t count) {
    const Lanes16 lanes = Load16(group);
    StoreBits(AtLeast(lanes, threshold), count, plus + i / 8);
    StoreBits(AtMost(lanes, -threshold), count, minus + i / 8);
  });
}

void SubtractBeyond(float* x, int64_t n, float threshold, uint8_t* plus, uint8_t* minus) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Lanes16 lanes = Load16(x + i);
    const uint32_t up = AtLeast(lanes, threshold), down = AtMost(lanes, -threshold);
    StoreBits(up, 16, plus + i / 8);
    StoreBits(down, 16, minus + i / 8);
    Add16Ternary(up, down, -threshold, x + i);
  }
  PackBeyond(x + i, n - i, threshold, plus + i / 8, minus + i / 8);
  AddTernary(plus + i / 8, minus + i / 8, n - i, -threshold, x + i);
}

void PackDrawn(const float* x, int64_t n, float factor, const uint32_t* words, uint8_t* plus,
               uint8_t* minus) {
  ForGroups(x, n, [&](const float* group, int64_t i, int64_t count) {
    float excess[16];  // draw minus probability; the sign bit means "send"
#pragma omp simd
    for (int j = 0; j < 16; ++j) {
      const float draw = static_cast<float>(static_cast<int32_t>(words[i + j] >> 8)) * 0x1p-24F;
      excess[j] = draw - FloatOf(MagnitudeBits(group[j])) * factor;
    }
    const uint32_t sent = SignBits(Load16(excess)), negative = SignBits(Load16(group));
    StoreBits(sent & ~negative, count, plus + i / 8);
    StoreBits(sent & negative, count, minus + i / 8);
  });
}

void AddTernary(const uint8_t* plus, const uint8_t* minus, int64_t n, float value, float* sum) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Add16Ternary(Load16Bits(plus + i / 8), Load16Bits(minus + i / 8), value, sum + i);
  }
  for (; i < n; ++i) {
    const bool up = (plus[i / 8] >> i % 8 & 1) != 0, down = (minus[i / 8] >> i % 8 & 1) != 0;
    sum[i] += (up ? value : 0) - (down ? value : 0);
  }
}

void AddVotes(const float* votes, int64_t n, float size, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    // A tie multiplies by 0, so that a size that is not a number shows there, too.
    const float vote = votes[i] > 0 ? 1.0F : (votes[i] < 0 ? -1.0F : 0.0F);
    sum[i] += vote * size;
  }
}

bool Disjoint(const uint8_t* plus, const uint8_t* minus, int64_t bytes) {
  uint8_t both = 0;
#pragma omp simd reduction(| : both)
  for (int64_t i = 0; i < bytes; ++i) both |= plus[i] & minus[i];
  return both == 0;
}

}  // namespace ringtail::RT_KERNEL_ISA
