#include "layers/convolution/pointwise_weights.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
// One block of rows and three of columns of so many pixels fit the first-level cache.
constexpr int64_t kRunPixels = 400;
// A tile of sums and its operands' runs fit the second-level cache.
constexpr int64_t kTileRows = 256, kTileColumns = 288;
// Columns fill registers three blocks at a time; weights lie along src's channels, which are the
// columns unless they are fewer than this and dst's are more.
constexpr int64_t kEnoughColumns = 96;
// Work for many threads, but with sums over so many pixels that adding the slots costs little.
constexpr int64_t kItems = 32;
constexpr int64_t kMinPixelsPerSlot = 512;

// Tiles of nearly the same size, whole blocks.
int64_t TileChannels(const BlobDesc& blob, int64_t most) {
  const int64_t tiles = (blob.C + most - 1) / most;
  return (blob.channel_blocks() + tiles - 1) / tiles * blob.block;
}

int64_t Slots(const BlobDesc& blob, int64_t tiles) {
  int64_t slots = blob.N;
  while (slots > 1 &&
         (slots * tiles > kItems || slots * kMinPixelsPerSlot > blob.N * blob.plane())) {
    slots = (slots + 1) / 2;
  }
  return slots;
}

}  // namespace

int64_t PointwiseWeights::Axis::Channels(int64_t i) const {
  return std::min(tile, blob.C - i * tile);
}

const float* PointwiseWeights::Axis::At(const float* data, const PixelPieces::Run& run,
                                        int64_t i) const {
  const int64_t block = run.sample * blob.channel_blocks() + i * tile / blob.block;
  return data + (block * blob.plane() + run.first) * blob.block;
}

PointwiseWeights::PointwiseWeights(const ConvolutionProblem& problem)
    : dst_(problem.dst),
      bias_(problem.bias),
      columns_are_src_(problem.src.C >= std::min(kEnoughColumns, problem.dst.C)) {
  const Axis src = {.blob = problem.src, .weight_stride = 1};
  const Axis dst = {.blob = problem.dst, .weight_stride = problem.src.C};
  rows_ = columns_are_src_ ? dst : src;
  columns_ = columns_are_src_ ? src : dst;
  rows_.tile = TileChannels(rows_.blob, kTileRows);
  columns_.tile = TileChannels(columns_.blob, kTileColumns);
  slots_ = Slots(dst_, Tiles());
  pieces_ = PixelPieces(dst_.N, dst_.plane(), kRunPixels, 1);
}

size_t PointwiseWeights::scratch_bytes() const {
  const int64_t bias = bias_ ? dst_.N * dst_.channel_blocks() * dst_.block : 0;
  return (slots_ * Tiles() * TileFloats() + bias) * kFloatBytes;
}

// The sum of one tile over the samples of one slot.
void PointwiseWeights::SumTile(const float* rows, const float* columns, int64_t slot, int64_t tile,
                               float* sum) const {
  const int64_t row = tile / columns_.tiles(), column = tile % columns_.tiles();
  const int64_t lanes = dst_.block, pieces = pieces_.count();
  bool accumulate = false;
  pieces_.ForEachRun(
      pieces * slot / slots_, pieces * (slot + 1) / slots_, [&](const PixelPieces::Run& run) {
        RT_KERNEL(PointwiseMultiplyGradient)
        ({.rows = rows_.At(rows, run, row),
          .rows_block_stride = rows_.blob.plane() * lanes,
          .rows_sample_stride = rows_.blob.channel_blocks() * rows_.blob.plane() * lanes,
          .row_channels = rows_.Channels(row),
          .columns = columns_.At(columns, run, column),
          .columns_block_stride = columns_.blob.plane() * lanes,
          .columns_sample_stride = columns_.blob.channel_blocks() * columns_.blob.plane() * lanes,
          .column_blocks = (columns_.Channels(column) + lanes - 1) / lanes,
          .pieces = run.pieces,
          .pixels = run.pixels,
          .sum = sum,
          .sum_stride = columns_.tile,
          .accumulate = accumulate});
        accumulate = true;
      });
}

// Adds the slots' sums of one tile and writes them where they belong.
void PointwiseWeights::WriteTile(const float* sums, int64_t tile, float* diff_weight) const {
  const int64_t row = tile / columns_.tiles(), column = tile % columns_.tiles();
  const int64_t rows = rows_.Channels(row), columns = columns_.Channels(column);
  float* to = diff_weight + row * rows_.tile * rows_.weight_stride +
              column * columns_.tile * columns_.weight_stride;
  const float* from = sums + tile * TileFloats();
  float total[kTileColumns];
  for (int64_t r = 0; r < rows; ++r, from += columns_.tile, to += rows_.weight_stride) {
    std::copy(from, from + columns, total);
    for (int64_t slot = 1; slot < slots_; ++slot) {
      const float* add = from + slot * Tiles() * TileFloats();
      for (int64_t c = 0; c < columns; ++c) total[c] += add[c];
    }
    if (columns_are_src_) {
      std::copy(total, total + columns, to);
    } else {
      for (int64_t c = 0; c < columns; ++c) to[c * columns_.weight_stride] = total[c];
    }
  }
}

void PointwiseWeights::SumBias(const float* diff_dst, float* sums, float* diff_bias) const {
  const int64_t blocks = dst_.channel_blocks(), lanes = dst_.block;
  ParallelFor(dst_.N * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RT_KERNEL(PointwiseSumPixels)
      (diff_dst + i * dst_.plane() * lanes, dst_.plane(), sums + i * lanes);
    }
  });
  for (int64_t c = 0; c < dst_.C; ++c) {
    double total = 0;
    for (int64_t n = 0; n < dst_.N; ++n) total += sums[n * blocks * lanes + c];
    diff_bias[c] = static_cast<float>(total);
  }
}

void PointwiseWeights::Run(const ConvolutionTensors& tensors) {
  const float* rows = columns_are_src_ ? tensors.diff_dst : tensors.src;
  const float* columns = columns_are_src_ ? tensors.src : tensors.diff_dst;
  float* sums = reinterpret_cast<float*>(tensors.scratch);
  const int64_t tiles = Tiles();
  ParallelFor(slots_ * tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      SumTile(rows, columns, i / tiles, i % tiles, sums + i * TileFloats());
      if (slots_ == 1) WriteTile(sums, i, tensors.diff_weight);  // while it is in the cache
    }
  });
  if (slots_ > 1) {
    ParallelFor(tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) WriteTile(sums, i, tensors.diff_weight);
    });
  }
  if (bias_) SumBias(tensors.diff_dst, sums + slots_ * tiles * TileFloats(), tensors.diff_bias);
}

}  // namespace ringtail
