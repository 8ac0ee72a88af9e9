#include "layers/convolution/image/image_tiles_weights.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/tiles/bias_gradient.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_tiles.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = kTileOutputs, kGroup = kTileChannels;
constexpr int64_t kTileFloats = kBlock * kBlock;
constexpr int64_t kMostSlots = 16;  // work for as many threads
// Expanded lines and diff_dst of a part: a share of the second-level cache.
constexpr int64_t kBytesOfPart = 512 << 10;

}  // namespace

ImageTilesWeights::ImageTilesWeights(const ConvolutionProblem& problem)
    : lines_(problem),
      window_(problem.window),
      channels_(problem.src.C),
      dst_(problem.dst),
      slots_(std::min(dst_.N, kMostSlots)),
      threads_(NumComputeThreads()) {
  const int64_t bytes_per_line = RowPixels() * kBlock * static_cast<int64_t>(sizeof(Bfloat16));
  const int64_t fit = kBytesOfPart / bytes_per_line - TapBlocks() * window_.KH;
  rows_ = EqualBlocks(dst_.H, fit / (TapBlocks() * window_.SH + dst_.channel_blocks()), 1);
  sums_at_ = scratch_.Add<float>(slots_ * SumFloats());
  lines_at_ = scratch_.Add<Bfloat16>(threads_ * lines_.LinesOf(rows_) * lines_.length());
  expanded_at_ = scratch_.Add<Bfloat16>(threads_ * ExpandedNumbers());
  pixels_at_ = scratch_.Add<Bfloat16>(threads_ * PartPixels() * kBlock);
  diff_dst_at_ = scratch_.Add<Bfloat16>(threads_ * dst_.channel_blocks() * PartPixels() * kBlock);
}

int64_t ImageTilesWeights::TapBlocks() const { return CeilDivide(lines_.taps(), kBlock); }
int64_t ImageTilesWeights::RowPixels() const { return RoundUp(dst_.W, int64_t{2}); }
int64_t ImageTilesWeights::PartPixels() const { return RoundUp(rows_ * RowPixels(), kGroup); }
int64_t ImageTilesWeights::PhaseNumbers() const {
  const int64_t lines = rows_ + (window_.KH - 1) / window_.SH;
  return (lines * RowPixels() + kGroup) * kBlock;
}
int64_t ImageTilesWeights::ExpandedNumbers() const {
  return TapBlocks() * window_.SH * PhaseNumbers();
}
int64_t ImageTilesWeights::SumFloats() const {
  return dst_.channel_blocks() * window_.KH * TapBlocks() * kTileFloats;
}

// To [block of taps][phase][line of the phase][pair][16][2].
void ImageTilesWeights::Expand(int64_t rows, const Buffers& buffers) const {
  const int64_t line_numbers = RowPixels() * kBlock;
  for (int64_t l = 0; l < lines_.LinesOf(rows); ++l) {
    const int64_t phase = l % window_.SH, at = l / window_.SH;
    RT_KERNEL(ExpandImageLine, buffers.lines + l * lines_.length(), lines_.pixel_step(),
              TapBlocks(), RowPixels() / 2,
              buffers.expanded + phase * PhaseNumbers() + at * line_numbers,
              window_.SH * PhaseNumbers());
  }
}

// To [block][16][PartPixels()], zeros beyond the ends of rows.
void ImageTilesWeights::PackDiffDst(const ConvolutionTensors& t, int64_t sample, int64_t first,
                                    int64_t rows, const Buffers& buffers) const {
  const int64_t row_numbers = RowPixels() * kBlock, blob_row = dst_.W * kBlock;
  for (int64_t block = 0; block < dst_.channel_blocks(); ++block) {
    const int64_t plane = (sample * dst_.channel_blocks() + block) * dst_.H + first;
    const Bfloat16* const from = ElementsOf<Bfloat16>(t.diff_dst) + plane * blob_row;
    for (int64_t y = 0; y < rows; ++y) {
      Bfloat16* const to = buffers.pixels + y * row_numbers;
      std::copy_n(from + y * blob_row, blob_row, to);
      std::fill_n(to + blob_row, row_numbers - blob_row, Bfloat16());
    }
    std::fill(buffers.pixels + rows * row_numbers, buffers.pixels + PartPixels() * kBlock,
              Bfloat16());
    RT_KERNEL(TransposeTilePixels, buffers.pixels, PartPixels(), PartPixels(),
              buffers.diff_dst + block * kBlock * PartPixels());
  }
}

void ImageTilesWeights::AddPart(const ConvolutionTensors& t, int64_t sample, int64_t first,
                                const Buffers& buffers, float* sums, bool is_first) const {
  const int64_t rows = std::min(rows_, dst_.H - first), blocks = dst_.channel_blocks();
  lines_.Pack(t.src, sample, first, rows, buffers.lines);
  Expand(rows, buffers);
  PackDiffDst(t, sample, first, rows, buffers);
  const int64_t block_numbers = kBlock * PartPixels(), tap_blocks = TapBlocks();
  for (int64_t block = 0; block < blocks; block += 2) {
    for (int64_t line = 0; line < window_.KH; ++line) {
      const int64_t phase = line % window_.SH, at = line / window_.SH;
      for (int64_t tap = 0; tap < tap_blocks; tap += 2) {
        RT_KERNEL(MultiplyBf16TileGradient,
                  {.rows = buffers.diff_dst + block * block_numbers,
                   .rows_block_stride = block_numbers,
                   .row_stride = PartPixels(),
                   .columns = buffers.expanded + (tap * window_.SH + phase) * PhaseNumbers() +
                              at * RowPixels() * kBlock,
                   .columns_block_stride = window_.SH * PhaseNumbers(),
                   .row_blocks = static_cast<int>(std::min<int64_t>(2, blocks - block)),
                   .column_blocks = static_cast<int>(std::min<int64_t>(2, tap_blocks - tap)),
                   .groups = CeilDivide(rows * RowPixels(), kGroup),
                   .sums = sums + ((block * window_.KH + line) * tap_blocks + tap) * kTileFloats,
                   .sums_row_stride = window_.KH * tap_blocks * kTileFloats,
                   .sums_column_stride = kTileFloats,
                   .accumulate = !is_first});
      }
    }
  }
}

void ImageTilesWeights::AddSlot(const ConvolutionTensors& t, int64_t slot,
                                const Buffers& buffers) const {
  float* const sums = ArrayAt<float>(t.scratch, sums_at_) + slot * SumFloats();
  bool is_first = true;
  for (int64_t n = dst_.N * slot / slots_; n < dst_.N * (slot + 1) / slots_; ++n) {
    for (int64_t first = 0; first < dst_.H; first += rows_, is_first = false) {
      AddPart(t, n, first, buffers, sums, is_first);
    }
  }
}

// Adds up the slots, in order.
void ImageTilesWeights::Write(const ConvolutionTensors& t) const {
  const float* const sums = ArrayAt<float>(t.scratch, sums_at_);
  ParallelFor(dst_.C, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      for (int64_t line = 0; line < window_.KH; ++line) {
        for (int64_t i = 0; i < lines_.taps(); ++i) {
          const int64_t tile = (k / kBlock * window_.KH + line) * TapBlocks() + i / kBlock;
          const float* from = sums + tile * kTileFloats + k % kBlock * kBlock + i % kBlock;
          float total = from[0];
          for (int64_t slot = 1; slot < slots_; ++slot) total += from[slot * SumFloats()];
          const int64_t filter = k * channels_ + i % channels_;
          t.diff_weight[(filter * window_.KH + line) * window_.KW + i / channels_] = total;
        }
      }
    }
  });
}

void ImageTilesWeights::Run(const ConvolutionTensors& t) {
  ForEachThread(threads_, [&](int64_t thread) {
    const Buffers mine = {
        ArrayAt<Bfloat16>(t.scratch, lines_at_) + thread * lines_.LinesOf(rows_) * lines_.length(),
        ArrayAt<Bfloat16>(t.scratch, expanded_at_) + thread * ExpandedNumbers(),
        ArrayAt<Bfloat16>(t.scratch, pixels_at_) + thread * PartPixels() * kBlock,
        ArrayAt<Bfloat16>(t.scratch, diff_dst_at_) +
            thread * dst_.channel_blocks() * PartPixels() * kBlock};
    // A last group reads what no line has written: any finite numbers, times zeros.
    std::fill_n(mine.expanded, ExpandedNumbers(), Bfloat16());
    RT_KERNEL(BeginBf16Tiles)();
    for (int64_t slot = slots_ * thread / threads_; slot < slots_ * (thread + 1) / threads_;
         ++slot) {
      AddSlot(t, slot, mine);
    }
    RT_KERNEL(EndBf16Tiles)();
  });
  Write(t);
  if (t.diff_bias != nullptr) SumBiasGradient(dst_, t.diff_dst, t.diff_bias);
}

}  // namespace ringtail
