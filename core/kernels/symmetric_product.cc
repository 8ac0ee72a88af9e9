#include "core/kernels/symmetric_product.h"

#include "core/kernels/vec.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kRows = kRegisters == 32 ? 12 : 6;
constexpr int kFewRows = 4;  // what is left of the rows
constexpr int kVectors = 2;
constexpr int64_t kColumns = kVectors * kLanes;
constexpr int64_t kPanelDepth = 256;

int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// A part of b: rows [first, first + depth), columns [column, column + columns); panel[d][j] is row first + d,
// column column + j.
struct Panel {
  int64_t first, depth, column, columns;
  float* values;
};

void PackAsIs(const SymmetricStrip& s, const Panel& p) {
  const float* b = s.b + p.first * s.size + p.column;
  float* to = p.values;
  for (int64_t d = 0; d < p.depth; ++d, b += s.size, to += kColumns) {
    if (p.columns == kColumns) {
      for (int v = 0; v < kVectors; ++v) Store(to + v * kLanes, Load(b + v * kLanes));
    } else {
      for (int64_t j = 0; j < kColumns; ++j) to[j] = j < p.columns ? b[j] : 0;
    }
  }
}

void PackTransposed(const SymmetricStrip& s, const Panel& p) {
  const float* const b = s.b + p.column * s.depth + p.first;
  const int64_t tiles = p.columns == kColumns ? p.depth / kLanes * kLanes : 0;
  for (int64_t d = 0; d < tiles; d += kLanes) {
    for (int v = 0; v < kVectors; ++v) {
      TransposeTile(b + v * kLanes * s.depth + d, s.depth, p.values + d * kColumns + v * kLanes,
                    kColumns);
    }
  }
  for (int64_t d = tiles; d < p.depth; ++d) {
    for (int64_t j = 0; j < kColumns; ++j) {
      p.values[d * kColumns + j] = j < p.columns ? b[j * s.depth + d] : 0;
    }
  }
}

// Where sums go: c = alpha sum + beta c.
struct Target {
  float* c;
  int64_t stride, columns;
  float alpha, beta;
};

[[gnu::always_inline]] static inline void Put(const Target& to, int64_t row, const Vec* sums) {
  float* const c = to.c + row * to.stride;
  if (to.columns == kColumns) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Vec value = to.alpha * sums[v];
      if (to.beta != 0) value += to.beta * Load(c + v * kLanes);
      Store(c + v * kLanes, value);
    }
    return;
  }
  for (int64_t j = 0; j < to.columns; ++j) {
    const float value = to.alpha * sums[j / kLanes][j % kLanes];
    c[j] = to.beta != 0 ? value + to.beta * c[j] : value;
  }
}

// Of kCount rows of a, from `a` on.
template <int kCount>
void MultiplyRows(const SymmetricStrip& s, const float* a, const Panel& p, const Target& to) {
  Vec sums[kCount][kVectors] = {};
  const float* right = p.values;
  for (int64_t d = 0; d < p.depth; ++d, right += kColumns, a += s.a_column) {
    const Vec b0 = LoadOnce(right), b1 = LoadOnce(right + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const Vec left = Broadcast(a[r * s.a_row]);
      sums[r][0] += left * b0;
      sums[r][1] += left * b1;
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) Put(to, r, sums[r]);
}

void MultiplyPanel(const SymmetricStrip& s, const Panel& p) {
  const auto a = [&](int64_t row) { return s.a + row * s.a_row + p.first * s.a_column; };
  // What is there counts once, whatever the number of panels in the depth.
  const float beta = p.first == 0 ? s.beta : 1;
  const auto target = [&](int64_t row) {
    return Target{s.c + row * s.size + p.column, s.size, p.columns, s.alpha, beta};
  };
  int64_t row = s.begin > p.column ? s.begin : p.column;
  for (; row + kRows <= s.end; row += kRows) {
    MultiplyRows<kRows>(s, a(row), p, target(row));
  }
  for (; row + kFewRows <= s.end; row += kFewRows) {
    MultiplyRows<kFewRows>(s, a(row), p, target(row));
  }
  for (; row < s.end; ++row) MultiplyRows<1>(s, a(row), p, target(row));
}

// Above the diagonal as below.
void Mirror(const SymmetricStrip& s) {
  for (int64_t row = s.begin; row < s.end; row += kLanes) {
    const int64_t end = Least(row + kLanes, s.end);
    int64_t column = 0;
    for (; end - row == kLanes && column + kLanes <= row; column += kLanes) {
      TransposeTile(s.c + row * s.size + column, s.size, s.c + column * s.size + row, s.size);
    }
    for (int64_t i = row; i < end; ++i) {
      for (int64_t j = column; j < i; ++j) s.c[j * s.size + i] = s.c[i * s.size + j];
    }
  }
}

}  // namespace

void MultiplySymmetricStrip(const SymmetricStrip& strip) {
  alignas(64) float values[kPanelDepth * kColumns];
  for (int64_t column = 0; column < strip.end; column += kColumns) {
    for (int64_t first = 0; first < strip.depth; first += kPanelDepth) {
      const Panel panel{.first = first,
                        .depth = Least(kPanelDepth, strip.depth - first),
                        .column = column,
                        .columns = Least(kColumns, strip.size - column),
                        .values = values};
      strip.b_transposed ? PackTransposed(strip, panel) : PackAsIs(strip, panel);
      MultiplyPanel(strip, panel);
    }
  }
  Mirror(strip);
}

}  // namespace ringtail::RT_KERNEL_ISA
