#include "layers/convolution/tiles/tile_weights.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/tiles/bias_gradient.h"
#include "layers/convolution/tiles/tile_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/bf16/bf16_tiles.h"
#include "layers/kernels/bf16/pointwise_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = kTileOutputs;   // channels of a block of the blobs
constexpr int64_t kGroup = kTileChannels;  // pixels of a product
constexpr int64_t kTileFloats = kBlock * kBlock;
constexpr int64_t kMostSlots = 8;
constexpr int64_t kMostSumBytes = 2 << 20;
// The share of a core's second-level cache that a packed strip may take.
constexpr int64_t kStripBytes = 1 << 20;
constexpr int64_t kStripPixels = 2048;

bool IsOneByOne(const Window& w) { return w.KH == 1 && w.KW == 1; }

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> TileWeights::Create(const ConvolutionProblem& p,
                                                          ConvolutionDirection direction) {
  if (direction != ConvolutionDirection::kBackwardWeights || !IsForTiles(p)) return nullptr;
  return std::make_unique<TileWeights>(p, BestBf16Unit());
}

TileWeights::TileWeights(const ConvolutionProblem& problem, Bf16Unit unit)
    : unit_(unit),
      kernels_(KernelsOf(unit)),
      src_(problem.src),
      dst_(problem.dst),
      window_(problem.window),
      plane_(ForwardPlane(window_, dst_)),
      src_is_rows_(!IsOneByOne(window_) || src_.C <= dst_.C),
      row_blocks_(src_is_rows_ ? src_.channel_blocks() : dst_.channel_blocks()),
      column_blocks_(src_is_rows_ ? dst_.channel_blocks() : src_.channel_blocks()),
      threads_(NumComputeThreads()) {
  const int64_t fit = kMostSumBytes / (SumFloats() * static_cast<int64_t>(sizeof(float)));
  slots_ = std::clamp<int64_t>(std::min(fit, dst_.N), 1, kMostSlots);
  DivideIntoStrips();
  shares_ = std::min(CeilDivide(threads_, slots_), CeilDivide(row_blocks_, int64_t{2}));
  for (const TilePlaneTap& tap : plane_.results[0].taps) {
    tap_pixels_.push_back(tap.phase * kBlock * LinePixels() + tap.row * plane_.columns +
                          tap.column);
  }
  sums_ = scratch_.Add<float>(slots_ * SumFloats());
  rows_at_ =
      scratch_.Add<Bfloat16>(threads_ * row_blocks_ * plane_.phases() * kBlock * LinePixels());
  columns_at_ = scratch_.Add<Bfloat16>(threads_ * column_blocks_ * kBlock * LinePixels());
  lines_ = scratch_.Add<Bfloat16>(threads_ * kBlock * LinePixels());
}

// Whole groups of results, and as many pixels more as the last tap reaches beyond.
int64_t TileWeights::LinePixels() const {
  const int64_t beyond = plane_.more_rows * plane_.columns + window_.KW;
  const int64_t pixels = RoundUp(samples_ * ImagePixels(), kGroup) + RoundUp(beyond, kGroup);
  // Rows a multiple of 4 KiB apart would share a few sets of the caches.
  return pixels % 1024 == 0 ? pixels + kGroup : pixels;
}

// Rows of one image, or several images where these are small: each strip reads and writes all sums.
void TileWeights::DivideIntoStrips() {
  const int64_t blocks = row_blocks_ * plane_.phases() + column_blocks_;
  const int64_t pixel_bytes = blocks * kBlock * static_cast<int64_t>(sizeof(Bfloat16));
  const int64_t pixels =
      std::max(std::min(kStripBytes / pixel_bytes, kStripPixels), plane_.Pixels(1));
  rows_ = std::clamp<int64_t>(pixels / plane_.columns - plane_.more_rows, 1, dst_.H);
  rows_ = CeilDivide(dst_.H, CeilDivide(dst_.H, rows_));
  if (rows_ < dst_.H) return;
  samples_ = std::clamp<int64_t>(pixels / ImagePixels(), 1, CeilDivide(dst_.N, slots_));
}

// [pixel][16] of a phase of src, as far as LinePixels.
void TileWeights::PackSrc(const ConvolutionTensors& t, const Strip& strip, int64_t block,
                          int64_t phase, Bfloat16* line) const {
  const int64_t columns = plane_.columns;
  const ChannelAffine affine = t.src_affine.From(block * kBlock);
  for (int64_t i = 0; i < strip.samples; ++i) {
    const int64_t sample = (strip.sample + i) * src_.channel_blocks() + block;
    const Bfloat16* const plane = ElementsOf<Bfloat16>(t.src) + sample * src_.plane() * kBlock;
    for (int64_t row = 0; row < strip.rows + plane_.more_rows; ++row) {
      const TileRow place = RowOf(plane_, src_, phase, strip.row + row);
      const int64_t pixels = place.end - place.begin;
      Bfloat16* const to = line + (i * ImagePixels() + row * columns) * kBlock;
      Bfloat16* const inside = to + place.begin * kBlock;
      std::fill_n(to, place.begin * kBlock, Bfloat16());
      RT_KERNEL(CopyTilePixels, plane + (place.y * src_.W + place.x) * kBlock,
                plane_.stride_x * kBlock, pixels, inside);
      if (!affine.is_identity()) RT_KERNEL(MapBf16Pixels, inside, pixels, affine, inside);
      std::fill_n(to + place.end * kBlock, (columns - place.end) * kBlock, Bfloat16());
    }
  }
  const int64_t packed = (strip.samples - 1) * ImagePixels() + plane_.Pixels(strip.rows);
  std::fill(line + packed * kBlock, line + LinePixels() * kBlock, Bfloat16());
}

// [pixel][16] of diff_dst, zeros at the ends of rows and beyond.
void TileWeights::PackDiffDst(const ConvolutionTensors& t, const Strip& strip, int64_t block,
                              Bfloat16* line) const {
  const int64_t row_numbers = plane_.columns * kBlock, blob_row = dst_.W * kBlock;
  std::fill_n(line, LinePixels() * kBlock, Bfloat16());
  for (int64_t i = 0; i < strip.samples; ++i) {
    const int64_t sample = (strip.sample + i) * dst_.channel_blocks() + block;
    const Bfloat16* const plane = ElementsOf<Bfloat16>(t.diff_dst) + sample * dst_.plane() * kBlock;
    for (int64_t row = 0; row < strip.rows; ++row) {
      std::copy_n(plane + (strip.row + row) * blob_row, blob_row,
                  line + i * ImagePixels() * kBlock + row * row_numbers);
    }
  }
}

void TileWeights::PackRows(const ConvolutionTensors& t, const Strip& strip, const Range& blocks,
                           const Buffers& buffers) const {
  const int64_t phases = plane_.phases(), line = LinePixels();
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    for (int64_t phase = 0; phase < phases; ++phase) {
      if (src_is_rows_) {
        PackSrc(t, strip, block, phase, buffers.line);
      } else {
        PackDiffDst(t, strip, block, buffers.line);
      }
      RT_KERNEL(TransposeTilePixels, buffers.line, line, line,
                buffers.rows + (block * phases + phase) * kBlock * line);
    }
  }
}

void TileWeights::PackColumns(const ConvolutionTensors& t, const Strip& strip,
                              const Buffers& buffers) const {
  const int64_t line = LinePixels();
  for (int64_t block = 0; block < column_blocks_; ++block) {
    if (src_is_rows_) {
      PackDiffDst(t, strip, block, buffers.line);
    } else {
      PackSrc(t, strip, block, /*phase=*/0, buffers.line);
    }
    RT_KERNEL(InterleaveBf16Pixels, buffers.line, line, buffers.columns + block * kBlock * line);
  }
}

// `blocks`: of rows.
void TileWeights::AddStrip(const ConvolutionTensors& t, const Strip& strip, const Range& blocks,
                           const Buffers& buffers, float* sums, bool first) const {
  PackRows(t, strip, blocks, buffers);
  PackColumns(t, strip, buffers);
  const int64_t line = LinePixels(), block_numbers = plane_.phases() * kBlock * line;
  const int64_t pixels = (strip.samples - 1) * ImagePixels() + strip.rows * plane_.columns;
  for (int64_t i = blocks.begin; i < blocks.end; i += 2) {
    for (int64_t j = 0; j < column_blocks_; j += 2) {
      for (int64_t tap = 0; tap < taps(); ++tap) {
        kernels_.multiply_gradient(
            {.rows = buffers.rows + i * block_numbers + tap_pixels_[tap],
             .rows_block_stride = block_numbers,
             .row_stride = line,
             .columns = buffers.columns + j * kBlock * line,
             .columns_block_stride = kBlock * line,
             .row_blocks = static_cast<int>(std::min<int64_t>(2, blocks.end - i)),
             .column_blocks = static_cast<int>(std::min<int64_t>(2, column_blocks_ - j)),
             .groups = CeilDivide(pixels, kGroup),
             .sums = sums + ((i * column_blocks_ + j) * taps() + tap) * kTileFloats,
             .sums_row_stride = column_blocks_ * taps() * kTileFloats,
             .sums_column_stride = taps() * kTileFloats,
             .accumulate = !first});
      }
    }
  }
}

// The sums of the slots, to (K, C, KH, KW).
void TileWeights::AddSlots(const float* sums, float* diff_weight) const {
  ParallelFor(row_blocks_ * column_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t i = pair / column_blocks_, j = pair % column_blocks_;
      const int64_t k = (src_is_rows_ ? j : i) * kBlock, c = (src_is_rows_ ? i : j) * kBlock;
      RT_KERNEL(AddTileSums, {.sums = sums + pair * taps() * kTileFloats,
                              .slots = slots_,
                              .slot_stride = SumFloats(),
                              .tap_count = taps(),
                              .rows_are_outputs = !src_is_rows_,
                              .outputs = std::min(kBlock, dst_.C - k),
                              .channels = std::min(kBlock, src_.C - c),
                              .weight = diff_weight + (k * src_.C + c) * taps(),
                              .k_stride = src_.C * taps()});
    }
  });
}

void TileWeights::Run(const ConvolutionTensors& t) {
  float* const sums = ArrayAt<float>(t.scratch, sums_);
  const int64_t items = slots_ * shares_, line = LinePixels();
  const int64_t pairs = CeilDivide(row_blocks_, int64_t{2});
  ForEachThread(threads_, [&](int64_t thread) {
    const Buffers buffers = {
        ArrayAt<Bfloat16>(t.scratch, rows_at_) +
            thread * row_blocks_ * plane_.phases() * kBlock * line,
        ArrayAt<Bfloat16>(t.scratch, columns_at_) + thread * column_blocks_ * kBlock * line,
        ArrayAt<Bfloat16>(t.scratch, lines_) + thread * kBlock * line};
    kernels_.begin();
    for (int64_t item = items * thread / threads_; item < items * (thread + 1) / threads_; ++item) {
      const int64_t slot = item / shares_, share = item % shares_;
      const Range blocks = {2 * (pairs * share / shares_),
                            std::min(row_blocks_, 2 * (pairs * (share + 1) / shares_))};
      bool first = true;
      const int64_t end = dst_.N * (slot + 1) / slots_;
      for (int64_t n = dst_.N * slot / slots_; n < end; n += samples_) {
        for (int64_t row = 0; row < dst_.H; row += rows_, first = false) {
          const Strip strip = {.sample = n,
                               .samples = std::min(samples_, end - n),
                               .row = row,
                               .rows = std::min(rows_, dst_.H - row)};
          AddStrip(t, strip, blocks, buffers, sums + slot * SumFloats(), first);
        }
      }
    }
    kernels_.end();
  });
  AddSlots(sums, t.diff_weight);
  if (t.diff_bias != nullptr) SumBiasGradient(dst_, t.diff_dst, t.diff_bias);
}

}  // namespace ringtail
