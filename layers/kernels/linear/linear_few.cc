#include "layers/kernels/linear/linear_few.h"

#include "layers/kernels/linear/linear_vec.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kDotRows = 4;                              // streams from memory
constexpr int kDotColumns = kRegisters == 32 ? 4 : 2;    // sums of kDotRows x kDotColumns vectors
constexpr int kStepsAtOnce = kRegisters == 32 ? 16 : 8;  // rows of b in registers
constexpr int64_t kAheadFloats = 512;                    // far enough to hide memory's latency

float Sum(Vec v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

template <int kRows, int kColumns>
void Dots(const RowDots& p, int64_t row, int64_t column) {
  const float* a = p.a + row * p.depth;
  const float* b = p.b + column * p.depth;
  Vec sum[kRows][kColumns] = {};
  int64_t i = 0;
  for (; i + kLanes <= p.depth; i += kLanes) {
    Vec right[kColumns];
#pragma GCC unroll 4
    for (int x = 0; x < kColumns; ++x) right[x] = Load(b + x * p.depth + i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(a + r * p.depth + i + kAheadFloats);
      const Vec left = Load(a + r * p.depth + i);
#pragma GCC unroll 4
      for (int x = 0; x < kColumns; ++x) sum[r][x] += left * right[x];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int x = 0; x < kColumns; ++x) {
      float rest = 0;
      for (int64_t k = i; k < p.depth; ++k) rest += a[r * p.depth + k] * b[x * p.depth + k];
      p.c[(row + r) * p.columns + column + x] = Sum(sum[r][x]) + rest;
    }
  }
}

template <int kRows>
void DotsOfRows(const RowDots& p, int64_t row) {
  int64_t column = 0;
  for (; column + kDotColumns <= p.columns; column += kDotColumns) {
    Dots<kRows, kDotColumns>(p, row, column);
  }
  for (; column < p.columns; ++column) Dots<kRows, 1>(p, row, column);
}

// c += kSteps steps of the depth, columns [begin, end). Every element adds its products one after
// the other, for any kSteps.
template <int kSteps>
void AddSteps(const FewRowsProduct& p, int64_t step, int64_t begin, int64_t end) {
  const float* b = p.b + step * p.columns;
  int64_t x = begin;
  for (; x + kLanes <= end; x += kLanes) {
    Vec right[kSteps];
#pragma GCC unroll 16
    for (int i = 0; i < kSteps; ++i) {
      __builtin_prefetch(b + i * p.columns + x + kAheadFloats);
      right[i] = Load(b + i * p.columns + x);
    }
    for (int64_t r = 0; r < p.rows; ++r) {
      const float* a = p.a + r * p.depth + step;
      float* c = p.c + r * p.columns + x;
      Vec sum = step > 0 ? Load(c) : Vec{};
#pragma GCC unroll 16
      for (int i = 0; i < kSteps; ++i) sum += Broadcast(a[i]) * right[i];
      Store(c, sum);
    }
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* a = p.a + r * p.depth + step;
    for (int64_t rest = x; rest < end; ++rest) {
      float* c = p.c + r * p.columns + rest;
      float sum = step > 0 ? *c : 0;
      for (int i = 0; i < kSteps; ++i) sum += a[i] * b[i * p.columns + rest];
      *c = sum;
    }
  }
}

}  // namespace

void MultiplyRowDots(const RowDots& p) {
  int64_t row = 0;
  for (; row + kDotRows <= p.rows; row += kDotRows) DotsOfRows<kDotRows>(p, row);
  for (; row < p.rows; ++row) DotsOfRows<1>(p, row);
}

void MultiplyFewRows(const FewRowsProduct& p, int64_t begin, int64_t end) {
  int64_t step = 0;
  for (; step + kStepsAtOnce <= p.depth; step += kStepsAtOnce) {
    AddSteps<kStepsAtOnce>(p, step, begin, end);
  }
  for (; step < p.depth; ++step) AddSteps<1>(p, step, begin, end);
}

}  // namespace ringtail::RT_KERNEL_ISA
