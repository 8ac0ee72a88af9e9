#include "dist/compression/sketches/thin_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace ringtail {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kRowsTogether = 4;
constexpr int64_t kColumnsTogether = 2048;  // of Q and four rows: these stay in the first cache
constexpr double kNothingLeft = 1e-8;

// 16 lanes: four registers of four floats, which every machine has.
constexpr int64_t kInRegister = 4;
using Register = float __attribute__((vector_size(kInRegister * sizeof(float))));
using Lanes = std::array<Register, kLanes / kInRegister>;

inline Register LoadRegister(const float* from) {
  Register loaded;
  std::memcpy(&loaded, from, sizeof(loaded));  // unaligned
  return loaded;
}

float SumOf(const Lanes& lanes) {
  float sum = 0;
  for (const Register& part : lanes) {
    for (int64_t i = 0; i < kInRegister; ++i) sum += part[i];
  }
  return sum;
}

// Dot products of one row with two vectors, which share the reading of the row.
struct TwoSums {
  float first = 0, second = 0;
};
TwoSums DotTwo(const float* row, const float* a, const float* b, int64_t n) {
  Lanes sum_a{}, sum_b{};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int64_t k = 0; k < kLanes / kInRegister; ++k) {
      const int64_t at = j + k * kInRegister;
      const Register x = LoadRegister(row + at);
      sum_a[k] += x * LoadRegister(a + at);
      sum_b[k] += x * LoadRegister(b + at);
    }
  }
  for (int64_t lane = 0; j + lane < n; ++lane) {
    sum_a[lane / kInRegister][lane % kInRegister] += row[j + lane] * a[j + lane];
    sum_b[lane / kInRegister][lane % kInRegister] += row[j + lane] * b[j + lane];
  }
  return {.first = SumOf(sum_a), .second = SumOf(sum_b)};
}

// to += p[0] row[0] + p[1] row[1] + ..
void AddRows(const std::array<const float*, kRowsTogether>& row,
             const std::array<float, kRowsTogether>& p, int64_t n, float* __restrict to) {
  const float *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3];
  for (int64_t j = 0; j < n; ++j) {
    to[j] += (p[0] * r0[j] + p[1] * r1[j]) + (p[2] * r2[j] + p[3] * r3[j]);
  }
}

double Dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 8> lanes{};
  for (size_t i = 0; i < a.size(); ++i) lanes[i % 8] += a[i] * b[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void MultiplyRows(const ThinShape& shape, std::span<const float> m, std::span<const float> q,
                  std::span<float> p) {
  for (int64_t i = 0; i < shape.rows; ++i) {
    const float* row = m.data() + i * shape.columns;
    for (int64_t c = 0; c < shape.rank; c += 2) {
      const int64_t other = std::min(c + 1, shape.rank - 1);  // the same vector twice if r is odd
      const TwoSums sums = DotTwo(row, q.data() + c * shape.columns,
                                  q.data() + other * shape.columns, shape.columns);
      p[c * shape.rows + i] = sums.first;
      p[other * shape.rows + i] = sums.second;
    }
  }
}

void MultiplyColumns(const ThinShape& shape, std::span<const float> m, std::span<const float> p,
                     std::span<float> q) {
  std::fill(q.begin(), q.end(), 0.0f);
  for (int64_t j = 0; j < shape.columns; j += kColumnsTogether) {
    const int64_t n = std::min(kColumnsTogether, shape.columns - j);
    for (int64_t i = 0; i < shape.rows; i += kRowsTogether) {
      for (int64_t c = 0; c < shape.rank; ++c) {
        std::array<const float*, kRowsTogether> rows;
        std::array<float, kRowsTogether> factors;
        for (int64_t k = 0; k < kRowsTogether; ++k) {
          // Past the end: the last row, times 0.
          const bool there = i + k < shape.rows;
          rows[k] = m.data() + (there ? i + k : shape.rows - 1) * shape.columns + j;
          factors[k] = there ? p[c * shape.rows + i + k] : 0.0f;
        }
        AddRows(rows, factors, n, q.data() + c * shape.columns + j);
      }
    }
  }
}

void MultiplyOut(const ThinShape& shape, std::span<const float> p, std::span<const float> q,
                 std::span<float> m) {
  for (int64_t i = 0; i < shape.rows; ++i) {
    float* __restrict row = m.data() + i * shape.columns;
    for (int64_t c = 0; c < shape.rank; c += 2) {
      const int64_t other = std::min(c + 1, shape.rank - 1);  // if r is odd: the last, times 0
      const float first = p[c * shape.rows + i];
      const float second = other == c ? 0.0f : p[other * shape.rows + i];
      const float *a = q.data() + c * shape.columns, *b = q.data() + other * shape.columns;
      if (c == 0) {
        for (int64_t j = 0; j < shape.columns; ++j) row[j] = first * a[j] + second * b[j];
      } else {
        for (int64_t j = 0; j < shape.columns; ++j) row[j] += first * a[j] + second * b[j];
      }
    }
  }
}

void Orthonormalise(int64_t rows, int64_t rank, std::span<float> p) {
  std::vector<double> exact(p.begin(), p.end());
  const auto vector = [&](int64_t c) { return std::span(exact).subspan(c * rows, rows); };
  for (int64_t c = 0; c < rank; ++c) {
    const std::span<double> v = vector(c);
    const double before = std::sqrt(Dot(v, v));
    for (int64_t b = 0; b < c; ++b) {
      const std::span<const double> other = vector(b);
      const double along = Dot(v, other);
      for (int64_t i = 0; i < rows; ++i) v[i] -= along * other[i];
    }
    const double left = std::sqrt(Dot(v, v));
    const double factor = left <= kNothingLeft * before ? 0 : 1 / left;
    for (int64_t i = 0; i < rows; ++i) v[i] *= factor;
  }
  std::copy(exact.begin(), exact.end(), p.begin());
}

}  // namespace ringtail
