#include "dist/compression/narrow_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringtail {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;
constexpr uint32_t kSmallestNormalHalf = 0x38800000;  // 2^-14, as f32
constexpr uint32_t kExponentOffset = 127 - 15;        // f32's exponents less f16's
constexpr uint32_t kLargestHalf = 0x7bff, kHalfNan = 0x7e00, kHalfInfinity = 0x7c00;

// `bits` without their lowest `dropped` ones.
uint32_t RoundToEven(uint32_t bits, int dropped) {
  const uint32_t just_below_half = (uint32_t{1} << (dropped - 1)) - 1;
  return (bits + just_below_half + ((bits >> dropped) & 1)) >> dropped;
}

}  // namespace

uint16_t HalfFromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kSign) >> 16, magnitude = bits & ~kSign;
  if (magnitude > kInfinity) return static_cast<uint16_t>(sign | kHalfNan);
  if (magnitude == kInfinity) return static_cast<uint16_t>(sign | kHalfInfinity);
  if (magnitude < kSmallestNormalHalf) {
    // Near 1/2, neighbours in f32 are 2^-24 apart, as small numbers in f16 are: the sum rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t half = RoundToEven(magnitude - (kExponentOffset << 23), 13);
  return static_cast<uint16_t>(sign | std::min(half, kLargestHalf));
}

float FloatFromHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  const uint32_t bits = magnitude << 13;
  return std::bit_cast<float>(
      sign | (magnitude >= kHalfInfinity ? bits | kInfinity : bits + (kExponentOffset << 23)));
}

uint16_t Bfloat16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & ~kSign) > kInfinity) return static_cast<uint16_t>(bits >> 16 | 0x40);  // a quiet one
  return static_cast<uint16_t>(RoundToEven(bits, 16));
}

float FloatFromBfloat16(uint16_t bfloat16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat16) << 16);
}

}  // namespace ringtail
