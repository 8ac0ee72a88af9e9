#include "layers/convolution/pointwise/pointwise_sums.h"

#include <algorithm>

#include "core/round.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

// Columns fill registers three blocks at a time; weights lie along src's channels, which are the
// columns unless they are fewer than this and dst's are more.
constexpr int64_t kEnoughColumns = 96;
// Work for many threads, but with sums over so many pixels that adding the slots costs little.
constexpr int64_t kItems = 32;
constexpr int64_t kMinPixelsPerSlot = 512;

// Tiles of nearly the same size, whole blocks.
int64_t TileChannels(const BlobDesc& blob, int64_t most) {
  const int64_t tiles = CeilDivide(blob.C, most);
  return CeilDivide(blob.channel_blocks(), tiles) * blob.block;
}

int64_t Slots(const BlobDesc& blob, int64_t tiles) {
  int64_t slots = blob.N;
  while (slots > 1 &&
         (slots * tiles > kItems || slots * kMinPixelsPerSlot > blob.N * blob.plane())) {
    slots = CeilDivide(slots, 2);
  }
  return slots;
}

}  // namespace

int64_t PointwiseSums::Axis::Channels(int64_t i) const { return std::min(tile, blob.C - i * tile); }

PixelBlocks PointwiseSums::Axis::Blocks(const PixelPieces::Run& run, int64_t i) const {
  return {blob, run, i * tile / blob.block, CeilDivide(Channels(i), blob.block)};
}

PointwiseSums::PointwiseSums(const ConvolutionProblem& problem, int64_t max_rows,
                             int64_t max_columns)
    : columns_are_src_(problem.src.C >= std::min(kEnoughColumns, problem.dst.C)) {
  const Axis src = {.blob = problem.src, .weight_stride = 1};
  const Axis dst = {.blob = problem.dst, .weight_stride = problem.src.C};
  rows_ = columns_are_src_ ? dst : src;
  columns_ = columns_are_src_ ? src : dst;
  rows_.tile = TileChannels(rows_.blob, max_rows);
  columns_.tile = TileChannels(columns_.blob, max_columns);
  slots_ = Slots(problem.dst, tiles());
}

PixelBlocks PointwiseSums::SrcBlocks(const PixelPieces::Run& run, int64_t tile) const {
  return columns_are_src_ ? columns_.Blocks(run, ColumnOf(tile)) : rows_.Blocks(run, RowOf(tile));
}
PixelBlocks PointwiseSums::DstBlocks(const PixelPieces::Run& run, int64_t tile) const {
  return columns_are_src_ ? rows_.Blocks(run, RowOf(tile)) : columns_.Blocks(run, ColumnOf(tile));
}

void PointwiseSums::Add(const RunViews& views, int64_t slot, int64_t tile, bool first,
                        float* sums) const {
  const PixelView& rows = columns_are_src_ ? views.diff_dst : views.src;
  const PixelView& columns = columns_are_src_ ? views.src : views.diff_dst;
  const PointwiseFetch src = Fetch(views.fetch_src), dst = Fetch(views.fetch_dst);
  RT_KERNEL(PointwiseMultiplyGradient,
            {.rows = rows.data,
             .rows_block_stride = rows.block_stride,
             .rows_sample_stride = rows.sample_stride,
             .row_channels = rows_.Channels(RowOf(tile)),
             .columns = columns.data,
             .columns_block_stride = columns.block_stride,
             .columns_sample_stride = columns.sample_stride,
             .column_blocks = columns_.Blocks(views.run, ColumnOf(tile)).blocks,
             .fetch_rows = columns_are_src_ ? dst : src,
             .fetch_columns = columns_are_src_ ? src : dst,
             .pieces = views.run.pieces,
             .pixels = views.run.pixels,
             .sum = sums + (slot * tiles() + tile) * TileFloats(),
             .sum_stride = columns_.tile,
             .accumulate = !first});
}

void PointwiseSums::AddBf16(const Bf16Run& run, int64_t slot, int64_t tile, bool first,
                            float* sums) const {
  const int64_t row = RowOf(tile), column = ColumnOf(tile);
  RT_KERNEL(MultiplyBf16Gradient, {.rows = columns_are_src_ ? run.diff_dst : run.src,
                                   .rows_block_stride = run.block_size,
                                   .row_channels = rows_.Channels(row),
                                   .columns = columns_are_src_ ? run.src : run.diff_dst,
                                   .columns_block_stride = run.block_size,
                                   .column_blocks = columns_.Channels(column) / columns_.blob.block,
                                   .pairs = run.block_size / (2 * kBf16ProductLanes),
                                   .sum = sums + (slot * tiles() + tile) * TileFloats(),
                                   .sum_stride = columns_.tile,
                                   .accumulate = !first});
}

void PointwiseSums::Write(int64_t tile, float* sums, float* diff_weight) const {
  const int64_t row = RowOf(tile), column = ColumnOf(tile);
  const int64_t rows = rows_.Channels(row), columns = columns_.Channels(column);
  float* to = diff_weight + row * rows_.tile * rows_.weight_stride +
              column * columns_.tile * columns_.weight_stride;
  float* total = sums + tile * TileFloats();
  for (int64_t r = 0; r < rows; ++r, total += columns_.tile, to += rows_.weight_stride) {
    for (int64_t slot = 1; slot < slots_; ++slot) {
      const float* add = total + slot * tiles() * TileFloats();
      for (int64_t c = 0; c < columns; ++c) total[c] += add[c];
    }
    if (columns_are_src_) {
      std::copy(total, total + columns, to);
    } else {
      for (int64_t c = 0; c < columns; ++c) to[c * columns_.weight_stride] = total[c];
    }
  }
}

}  // namespace ringtail
