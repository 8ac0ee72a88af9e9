#include "layers/kernels/linear/linear_multiply.h"

#include "layers/kernels/integers.h"
#include "layers/kernels/linear/linear_vec.h"

// The micro-kernel keeps kRows x kVecs vectors of c in registers: per step of the depth, kVecs
// registers of b times kRows numbers of a, broadcast from memory. Both operands are packed into the
// order in which it reads them: rows of a large matrix are often a power of two apart and would
// evict each other from the caches.
//
//   rows of a       [group of kLanes steps][row][step]: copied by vectors, without transposition
//   columns of b    [step][column], filled up with zeros to whole vectors
//
// The small operand is packed as a block that stays in the second-level cache; the large one panel
// by panel, each asked for (prefetched) while the panel before it is multiplied with.
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kRows = kRegisters == 32 ? 12 : 6;
constexpr int kVecs = 2;
constexpr int64_t kColumns = kVecs * kLanes;
constexpr int64_t kLineFloats = 16;

// Steps of the depth per block. More: fewer passes over c. Less: panels fit into smaller caches.
constexpr int64_t kDepth = 512;
constexpr int64_t kBlockFloats = 264 * kDepth;  // of the small operand; 264: 22 * 12, 256 + some
constexpr int64_t kPanelFloats = kDepth * kColumns;
static_assert(kRows <= kColumns, "kPanelFloats is for both operands");

enum class Write { kStore, kAdd, kStream };

// What to prefetch during a tile: one line per step, `first + group * group_stride + i * stride` in
// step i of a group of kLanes steps.
struct Ahead {
  const float* first;
  int64_t stride, group_stride;
};

int64_t WholeVecs(int64_t n) { return CeilDivide(n, kLanes) * kLanes; }

[[gnu::always_inline]] inline void WriteVec(float* p, Vec v, Write write) {
  if (write == Write::kStream) return StoreStreaming(p, v);
  Store(p, write == Write::kAdd ? Load(p) + v : v);
}

template <int kTileRows, int kTileVecs>
void MultiplyTile(const float* a, const float* b, int64_t depth, const Ahead& ahead, Write write,
                  float* c, int64_t c_stride) {
  Vec sum[kTileRows][kTileVecs] = {};
  const float* group_ahead = ahead.first;
  for (int64_t done = 0; done < depth; done += kLanes) {
    const int64_t steps = Min(kLanes, depth - done);
    const float* line_ahead = group_ahead;
    for (int64_t i = 0; i < steps; ++i) {
      __builtin_prefetch(line_ahead, /*rw=*/0, /*locality=*/2);
      line_ahead += ahead.stride;
      Vec right[kTileVecs];
#pragma GCC unroll 2
      for (int x = 0; x < kTileVecs; ++x) right[x] = Load(b + x * kLanes);
      b += kTileVecs * kLanes;
#pragma GCC unroll 12
      for (int r = 0; r < kTileRows; ++r) {
        const Vec left = Broadcast(a[r * kLanes + i]);
#pragma GCC unroll 2
        for (int x = 0; x < kTileVecs; ++x) sum[r][x] += left * right[x];
      }
    }
    a += kTileRows * kLanes;
    group_ahead += ahead.group_stride;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
    for (int x = 0; x < kTileVecs; ++x) {
      WriteVec(c + r * c_stride + x * kLanes, sum[r][x], write);
    }
  }
}

using TileFunction = void (*)(const float*, const float*, int64_t, const Ahead&, Write, float*,
                              int64_t);

// kMaxRows >= rows >= 1.
template <int kMaxRows>
TileFunction ChooseTile(int64_t rows, bool one_vec) {
  if (rows == kMaxRows) return one_vec ? MultiplyTile<kMaxRows, 1> : MultiplyTile<kMaxRows, kVecs>;
  if constexpr (kMaxRows > 1) return ChooseTile<kMaxRows - 1>(rows, one_vec);
  return nullptr;
}

// Any rows <= kRows and columns <= kColumns, of packed operands.
void Multiply(const float* a, const float* b, int64_t rows, int64_t depth, int64_t columns,
              const Ahead& ahead, Write write, float* c, int64_t c_stride) {
  const int64_t padded = WholeVecs(columns);
  const TileFunction tile = ChooseTile<kRows>(rows, padded == kLanes);
  if (columns == padded) return tile(a, b, depth, ahead, write, c, c_stride);
  float whole[kRows * kColumns];
  tile(a, b, depth, ahead, Write::kStore, whole, padded);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < columns; ++i) {
      float* to = c + r * c_stride + i;
      *to = write == Write::kAdd ? *to + whole[r * padded + i] : whole[r * padded + i];
    }
  }
}

void PackRows(const float* a, int64_t stride, int64_t rows, int64_t depth, float* packed) {
  int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) {
    for (int64_t r = 0; r < rows; ++r) Store(packed + r * kLanes, Load(a + r * stride + i));
    packed += rows * kLanes;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t rest = i; rest < depth; ++rest) {
      packed[r * kLanes + rest - i] = a[r * stride + rest];
    }
  }
}

void PackColumns(const float* b, int64_t stride, int64_t depth, int64_t columns, float* packed) {
  const int64_t padded = WholeVecs(columns), whole = columns / kLanes * kLanes;
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t x = 0; x < whole; x += kLanes) Store(packed + x, Load(b + x));
    for (int64_t x = whole; x < padded; ++x) packed[x] = x < columns ? b[x] : 0;
    packed += padded;
    b += stride;
  }
}

// All rows times one packed block of b: columns [column, column + columns), steps [step, step +
// depth).
void MultiplyBlockOfB(const MatrixProduct& p, int64_t column, int64_t columns, int64_t step,
                      int64_t depth, const float* b, float* panel) {
  const Write first = p.stream_c && p.depth <= kDepth ? Write::kStream : Write::kStore;
  const Ahead nothing = {panel, 0, 0};
  for (int64_t row = 0; row < p.rows; row += kRows) {
    const int64_t rows = Min(kRows, p.rows - row);
    const float* a = p.a + row * p.a_stride + step;
    PackRows(a, p.a_stride, rows, depth, panel);
    Ahead ahead = nothing;
    if (row + rows < p.rows) ahead = {a + kRows * p.a_stride, p.a_stride, kLanes};
    for (int64_t x = 0; x < columns; x += kColumns) {
      Multiply(panel, b + x * depth, rows, depth, Min(kColumns, columns - x), ahead,
               step > 0 ? Write::kAdd : first, p.c + row * p.c_stride + column + x, p.c_stride);
      ahead = nothing;  // the first tile has asked for all of it
    }
  }
}

// All columns times one packed block of a.
void MultiplyBlockOfA(const MatrixProduct& p, int64_t row, int64_t rows, int64_t step,
                      int64_t depth, const float* a, float* panel) {
  for (int64_t column = 0; column < p.columns; column += kColumns) {
    const int64_t columns = Min(kColumns, p.columns - column);
    const float* b = p.b + step * p.b_stride + column;
    PackColumns(b, p.b_stride, depth, columns, panel);
    int64_t ahead_column = kColumns;  // each tile asks for one line of each row
    for (int64_t r = 0; r < rows; r += kRows) {
      Ahead ahead = {panel, 0, 0};
      if (ahead_column < 2 * kColumns && column + ahead_column < p.columns) {
        ahead = {b + ahead_column, p.b_stride, kLanes * p.b_stride};
        ahead_column += kLineFloats;
      }
      Multiply(a + r * WholeVecs(depth), panel, Min(kRows, rows - r), depth, columns, ahead,
               step > 0 ? Write::kAdd : Write::kStore, p.c + (row + r) * p.c_stride + column,
               p.c_stride);
    }
  }
}

}  // namespace

void MultiplyLargeAOrC(const MatrixProduct& p, float* scratch) {
  float* panel = scratch;
  float* block = scratch + kPanelFloats;
  const int64_t max_columns = kBlockFloats / Min(p.depth, kDepth) / kColumns * kColumns;
  for (int64_t column = 0; column < p.columns; column += max_columns) {
    const int64_t columns = Min(max_columns, p.columns - column);
    for (int64_t step = 0; step < p.depth; step += kDepth) {
      const int64_t depth = Min(kDepth, p.depth - step);
      for (int64_t x = 0; x < columns; x += kColumns) {
        PackColumns(p.b + step * p.b_stride + column + x, p.b_stride, depth,
                    Min(kColumns, columns - x), block + x * depth);
      }
      MultiplyBlockOfB(p, column, columns, step, depth, block, panel);
    }
  }
  // Streamed stores are ordered by nothing else, and other threads will read c.
  if (p.stream_c) FinishStreaming();
}

void MultiplyLargeB(const MatrixProduct& p, float* scratch) {
  float* panel = scratch;
  float* block = scratch + kPanelFloats;
  constexpr int64_t kMaxRows = kBlockFloats / kDepth / kRows * kRows;
  for (int64_t row = 0; row < p.rows; row += kMaxRows) {
    const int64_t rows = Min(kMaxRows, p.rows - row);
    for (int64_t step = 0; step < p.depth; step += kDepth) {
      const int64_t depth = Min(kDepth, p.depth - step);
      for (int64_t r = 0; r < rows; r += kRows) {
        PackRows(p.a + (row + r) * p.a_stride + step, p.a_stride, Min(kRows, rows - r), depth,
                 block + r * WholeVecs(depth));
      }
      MultiplyBlockOfA(p, row, rows, step, depth, block, panel);
    }
  }
}

int64_t MultiplyScratchFloats() { return kPanelFloats + kBlockFloats; }
int64_t MultiplyRows() { return kRows; }
int64_t MultiplyColumns() { return kColumns; }

}  // namespace ringtail::RT_KERNEL_ISA
