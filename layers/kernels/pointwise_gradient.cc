// The products that make the gradient of the weights, and the sums that make that of the bias.
#include "core/kernels/vec.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/pointwise.h"

// A micro-kernel keeps kGradientRows x kVecs sums in registers (as pointwise.cc).
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kGradientVecs = 3;                         // column blocks at a time
constexpr int kGradientRows = kRegisters == 32 ? 8 : 4;  // divides kLanes

// Two of the blocks that come from memory while the rows of one group meet column blocks
// [k, k + vecs): each of the columns, and each of the rows with the first columns, as far as there
// are groups.
struct FetchPair {
  PointwiseFetch blocks[2] = {};

  FetchPair(const PointwiseGradientProduct& p, int64_t k, int vecs, int64_t group) {
    const int64_t columns = p.fetch_columns.at != nullptr ? vecs : 0;
    const int64_t row_blocks = CeilDivide(p.row_channels, kLanes);
    const int64_t rows = p.fetch_rows.at != nullptr && k == 0 ? row_blocks : 0;
    for (int i = 0; i < 2; ++i) {
      const int64_t block = 2 * group + i;
      if (block < columns) {
        blocks[i] = p.fetch_columns;
        blocks[i].at += (k + block) * p.fetch_columns.block_stride;
      } else if (block < columns + rows) {
        blocks[i] = p.fetch_rows;
        blocks[i].at += (block - columns) * p.fetch_rows.block_stride;
      }
    }
  }
};

// `next_rows` and `next_columns`: floats to blocks that later calls will read, fetched while this
// one computes; 0: none. `fetch`: what comes from memory meanwhile.
template <int kVecs>
void MicroGradient(const PointwiseGradientProduct& p, const float* rows, const float* columns,
                   int64_t next_rows, int64_t next_columns, const FetchPair& fetch, float* to) {
  Vec sum[kGradientRows][kVecs] = {};
  for (int64_t piece = 0; piece < p.pieces; ++piece) {
    const float* r = rows + piece * p.rows_sample_stride;
    const float* c = columns + piece * p.columns_sample_stride;
    const auto from = [&](const PointwiseFetch& f) {  // without: a line that is there
      return f.at == nullptr ? r : f.at + piece * f.sample_stride;
    };
    const float *fetch0 = from(fetch.blocks[0]), *fetch1 = from(fetch.blocks[1]);
    for (int64_t pixel = 0; pixel < p.pixels; ++pixel) {
      __builtin_prefetch(r + next_rows + pixel * kLanes);
      __builtin_prefetch(c + next_columns + pixel * kLanes);
      __builtin_prefetch(fetch0 + pixel * kLanes, 0, 2);
      __builtin_prefetch(fetch1 + pixel * kLanes, 0, 2);
      Vec column[kVecs];
#pragma GCC unroll 3
      for (int x = 0; x < kVecs; ++x) {
        column[x] = Load(c + x * p.columns_block_stride + pixel * kLanes);
      }
#pragma GCC unroll 8
      for (int row = 0; row < kGradientRows; ++row) {
        const Vec value = Broadcast(r[pixel * kLanes + row]);
#pragma GCC unroll 3
        for (int x = 0; x < kVecs; ++x) sum[row][x] += value * column[x];
      }
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kGradientRows; ++row) {
#pragma GCC unroll 3
    for (int x = 0; x < kVecs; ++x) {
      float* at = to + row * p.sum_stride + x * kLanes;
      Store(at, p.accumulate ? Load(at) + sum[row][x] : sum[row][x]);
    }
  }
}

}  // namespace

void PointwiseMultiplyGradient(const PointwiseGradientProduct& p) {
  const int64_t row_blocks = CeilDivide(p.row_channels, kLanes);
  const int64_t groups = CeilDivide(p.row_channels, kGradientRows);
  const int64_t first_fetch = groups > kGradientVecs ? groups - kGradientVecs : 0;
  for (int64_t k = 0; k < p.column_blocks;) {
    const int64_t left = p.column_blocks - k;
    const int vecs = left == 4 || left == 2 ? 2 : left == 1 ? 1 : kGradientVecs;
    const float* columns = p.columns + k * p.columns_block_stride;
    for (int64_t row = 0; row < p.row_channels; row += kGradientRows) {
      const float* rows = p.rows + row / kLanes * p.rows_block_stride + row % kLanes;
      const int64_t next_rows = k == 0 && row / kLanes + 1 < row_blocks ? p.rows_block_stride : 0;
      const int64_t next = row / kGradientRows - first_fetch;
      const int64_t next_columns = next >= 0 && k + vecs + next < p.column_blocks
                                       ? (vecs + next) * p.columns_block_stride
                                       : 0;
      const FetchPair fetch(p, k, vecs, row / kGradientRows);
      float* to = p.sum + row * p.sum_stride + k * kLanes;
      if (vecs == 3) MicroGradient<3>(p, rows, columns, next_rows, next_columns, fetch, to);
      if (vecs == 2) MicroGradient<2>(p, rows, columns, next_rows, next_columns, fetch, to);
      if (vecs == 1) MicroGradient<1>(p, rows, columns, next_rows, next_columns, fetch, to);
    }
    k += vecs;
  }
}

void PointwiseSumPixels(const float* blob, int64_t pixels, float* to) {
  Vec sum[4] = {};
  int64_t pixel = 0;
  for (; pixel + 4 <= pixels; pixel += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sum[i] += Load(blob + (pixel + i) * kLanes);
  }
  for (; pixel < pixels; ++pixel) sum[0] += Load(blob + pixel * kLanes);
  Store(to, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

}  // namespace ringtail::RT_KERNEL_ISA
