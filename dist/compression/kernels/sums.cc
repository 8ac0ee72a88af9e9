#include "dist/compression/kernels/sums.h"

#include "dist/compression/kernels/float_bits.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kLanes = 16;

double AddUp(const double* lanes) {
  double sum = 0;
  for (int j = 0; j < kLanes; ++j) sum += lanes[j];
  return sum;
}

// Sum of term(i), each i once and in order.
template <typename Term>
inline double Sum(int64_t n, Term term) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
  }
  for (int j = 0; i + j < n; ++j) lanes[j] += term(i + j);
  return AddUp(lanes);
}

// Sums of number(i), each i once and in order.
template <typename Number>
inline SignedSums SumEachSign(int64_t n, Number number) {
  double positive[kLanes] = {}, negative[kLanes] = {};
  int64_t i = 0;
  // An arithmetic shift makes the sign bit a mask of the whole number.
  const auto add = [&](int j) {
    const int32_t bits = BitsOf(number(i + j)), mask = bits >> 31;
    positive[j] += static_cast<double>(FloatOf(bits & ~mask));
    negative[j] += static_cast<double>(FloatOf(bits & mask));
  };
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) add(j);
  }
  for (int j = 0; i + j < n; ++j) add(j);
  return {.positive = AddUp(positive), .negative = AddUp(negative)};
}

inline double Abs(float v) { return static_cast<double>(FloatOf(MagnitudeBits(v))); }

}  // namespace

double SumAbs(const float* x, int64_t n) {
  return Sum(n, [x](int64_t i) { return Abs(x[i]); });
}

double SumSquares(const float* x, int64_t n) {
  return Sum(n, [x](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

double AddAndSumAbs(const float* x, int64_t n, float* to) {
  return Sum(n, [x, to](int64_t i) { return Abs(to[i] += x[i]); });
}

SignedSums SumBySign(const float* x, int64_t n) {
  return SumEachSign(n, [x](int64_t i) { return x[i]; });
}

SignedSums AddAndSumBySign(const float* x, int64_t n, float* to) {
  return SumEachSign(n, [x, to](int64_t i) { return to[i] += x[i]; });
}

int32_t MaxMagnitudeBits(const float* x, int64_t n) {
  int32_t most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) {
    const int32_t bits = MagnitudeBits(x[i]);
    most = bits > most ? bits : most;
  }
  return most;
}

int32_t MaxCode(const int8_t* codes, int64_t n) {
  uint8_t most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) {
    // -128 becomes 128, as a byte without a sign.
    const auto code = static_cast<uint8_t>(codes[i]);
    const auto magnitude = static_cast<uint8_t>(codes[i] < 0 ? -code : code);
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

}  // namespace ringtail::RT_KERNEL_ISA
