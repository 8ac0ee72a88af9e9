#include "core/kernels/product_block.h"

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

void PackAsIs(const ProductBlock& s, const Panel& p) {
  const float* b = s.b + p.first * s.b_row + p.column;
  float* to = p.values;
  for (int64_t d = 0; d < p.depth; ++d, b += s.b_row, to += kColumns) {
    if (p.columns == kColumns) {
      for (int v = 0; v < kVectors; ++v) Store(to + v * kLanes, Load(b + v * kLanes));
    } else {
      for (int64_t j = 0; j < kColumns; ++j) to[j] = j < p.columns ? b[j] : 0;
    }
  }
}

void PackTransposed(const ProductBlock& s, const Panel& p) {
  const float* const b = s.b + p.column * s.b_row + p.first;
  const int64_t tiles = p.columns == kColumns ? p.depth / kLanes * kLanes : 0;
  for (int64_t d = 0; d < tiles; d += kLanes) {
    for (int v = 0; v < kVectors; ++v) {
      TransposeTile(b + v * kLanes * s.b_row + d, s.b_row, p.values + d * kColumns + v * kLanes,
                    kColumns);
    }
  }
  for (int64_t d = tiles; d < p.depth; ++d) {
    for (int64_t j = 0; j < kColumns; ++j) {
      p.values[d * kColumns + j] = j < p.columns ? b[j * s.b_row + d] : 0;
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

// sum + left right of floats.
struct Floats {
  [[gnu::always_inline]] static inline Vec MultiplyAdd(Vec left, Vec right, Vec sum) {
    return sum + left * right;
  }
};

// Of pairs. By name: the compilers know the instruction only in functions that ask for AVX512-BF16, which
// templates cannot for some of their arguments alone.
struct Pairs {
  [[gnu::always_inline]] static inline Vec MultiplyAdd(Vec left, Vec right, Vec sum) {
#if defined(__AVX512F__)
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
#else
    (void)left, (void)right;
    __builtin_trap();
#endif
    return sum;
  }
};

// The bits of a float or a pair in all lanes.
[[gnu::always_inline]] static inline Vec BroadcastBits(const float* p) {
  int32_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  using Bits = int32_t __attribute__((vector_size(sizeof(Vec))));
  return reinterpret_cast<Vec>(bits - Bits{});
}

// Of kCount rows of a, from `a` on.
template <typename Numbers, int kCount>
void MultiplyRows(const ProductBlock& s, const float* a, const Panel& p, const Target& to) {
  Vec sums[kCount][kVectors] = {};
  const float* right = p.values;
  for (int64_t d = 0; d < p.depth; ++d, right += kColumns, a += s.a_column) {
    const Vec b0 = LoadOnce(right), b1 = LoadOnce(right + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const Vec left = BroadcastBits(a + r * s.a_row);
      sums[r][0] = Numbers::MultiplyAdd(left, b0, sums[r][0]);
      sums[r][1] = Numbers::MultiplyAdd(left, b1, sums[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) Put(to, r, sums[r]);
}

template <typename Numbers>
void MultiplyPanel(const ProductBlock& s, const Panel& p) {
  const auto a = [&](int64_t row) { return s.a + row * s.a_row + p.first * s.a_column; };
  // What is there counts once, whatever the number of panels in the depth.
  const float beta = p.first == 0 ? s.beta : 1;
  const auto target = [&](int64_t row) {
    return Target{s.c + row * s.c_row + p.column, s.c_row, p.columns, s.alpha, beta};
  };
  int64_t row = s.symmetric && p.column > s.begin ? p.column : s.begin;
  for (; row + kRows <= s.end; row += kRows) {
    MultiplyRows<Numbers, kRows>(s, a(row), p, target(row));
  }
  for (; row + kFewRows <= s.end; row += kFewRows) {
    MultiplyRows<Numbers, kFewRows>(s, a(row), p, target(row));
  }
  for (; row < s.end; ++row) MultiplyRows<Numbers, 1>(s, a(row), p, target(row));
}

// Above the diagonal as below.
void Mirror(const ProductBlock& s) {
  for (int64_t row = s.begin; row < s.end; row += kLanes) {
    const int64_t end = Least(row + kLanes, s.end);
    int64_t column = 0;
    for (; end - row == kLanes && column + kLanes <= row; column += kLanes) {
      TransposeTile(s.c + row * s.c_row + column, s.c_row, s.c + column * s.c_row + row, s.c_row);
    }
    for (int64_t i = row; i < end; ++i) {
      for (int64_t j = column; j < i; ++j) s.c[j * s.c_row + i] = s.c[i * s.c_row + j];
    }
  }
}

}  // namespace

void MultiplyProductBlock(const ProductBlock& block) {
  alignas(64) float values[kPanelDepth * kColumns];
  const int64_t right = block.symmetric ? block.end : block.right;
  for (int64_t column = block.left; column < right; column += kColumns) {
    for (int64_t first = 0; first < block.depth; first += kPanelDepth) {
      const Panel panel{.first = first,
                        .depth = Least(kPanelDepth, block.depth - first),
                        .column = column,
                        .columns = Least(kColumns, block.right - column),
                        .values = values};
      block.b_transposed ? PackTransposed(block, panel) : PackAsIs(block, panel);
      block.pairs ? MultiplyPanel<Pairs>(block, panel) : MultiplyPanel<Floats>(block, panel);
    }
  }
  if (block.symmetric) Mirror(block);
}

}  // namespace ringtail::RT_KERNEL_ISA
