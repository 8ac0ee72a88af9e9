#include "layers/convolution/image/image_tiles_forward.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_tiles.h"

namespace ringtail {
namespace {

constexpr int64_t kBlock = kTileOutputs;
constexpr int64_t kPanelBlocks = 2;
constexpr int64_t kBytesOfLines = 96 << 10;  // a share of the second-level cache

}  // namespace

ImageTilesForward::ImageTilesForward(const ConvolutionProblem& problem)
    : lines_(problem),
      window_(problem.window),
      channels_(problem.src.C),
      dst_(problem.dst),
      activation_(problem.activation),
      rows_(lines_.RowsThatFit(kBytesOfLines, dst_.H)),
      threads_(NumComputeThreads()) {
  for (int64_t line = 0; line < window_.KH; ++line) {
    for (int64_t chunk = 0; chunk < Chunks(); ++chunk) {
      taps_.push_back(line * lines_.length() + chunk * kTileChannels);
    }
  }
  plain_at_ = scratch_.Add<float>(dst_.C * window_.KH * lines_.taps());
  weights_at_ =
      scratch_.Add<Bfloat16>(dst_.channel_blocks() * window_.KH * Chunks() * kTileNumbers);
  lines_at_ = scratch_.Add<Bfloat16>(threads_ * LineNumbers());
  sums_at_ = scratch_.Add<float>(threads_ * kPanelBlocks * SumFloats());
}

int64_t ImageTilesForward::Chunks() const { return CeilDivide(lines_.taps(), kTileChannels); }

// The last tile of a line reads pixels beyond it.
int64_t ImageTilesForward::LineNumbers() const {
  return lines_.LinesOf(rows_) * lines_.length() + kTilePixels * lines_.pixel_step();
}
int64_t ImageTilesForward::SumFloats() const { return RoundUp(dst_.W, kTilePixels) * kBlock; }

// weight (K, C, KH, KW) to (K, KH, [KW][C]), and that to tiles.
void ImageTilesForward::PackWeights(const float* weight, std::byte* scratch) const {
  auto* const plain = ArrayAt<float>(scratch, plain_at_);
  auto* const tiles = ArrayAt<Bfloat16>(scratch, weights_at_);
  const int64_t taps = lines_.taps(), row = window_.KH * taps;
  for (int64_t k = 0; k < dst_.C; ++k) {
    for (int64_t line = 0; line < window_.KH; ++line) {
      for (int64_t i = 0; i < taps; ++i) {
        const int64_t filter = k * channels_ + i % channels_;
        plain[k * row + line * taps + i] =
            weight[(filter * window_.KH + line) * window_.KW + i / channels_];
      }
    }
  }
  for (int64_t block = 0; block < dst_.channel_blocks(); ++block) {
    for (size_t t = 0; t < taps_.size(); ++t) {
      const auto tap = static_cast<int64_t>(t);
      const int64_t line = tap / Chunks(), first = tap % Chunks() * kTileChannels;
      RT_KERNEL(PackTileWeights, {.weight = plain + block * kBlock * row + line * taps + first,
                                  .k_stride = row,
                                  .c_stride = 1,
                                  .outputs = std::min(kBlock, dst_.C - block * kBlock),
                                  .channels = std::min(kTileChannels, taps - first),
                                  .to = tiles + (block * std::ssize(taps_) + tap) * kTileNumbers});
    }
  }
}

void ImageTilesForward::RunPart(const ConvolutionTensors& t, int64_t sample, int64_t part,
                                const Buffers& buffers) const {
  const int64_t first = part * rows_, rows = std::min(rows_, dst_.H - first);
  lines_.Pack(t.src, sample, first, rows, buffers.lines);
  const auto* const weights = ArrayAt<Bfloat16>(t.scratch, weights_at_);
  auto* const dst = ElementsOf<Bfloat16>(t.dst);
  const int64_t row_numbers = dst_.W * kBlock;
  for (int64_t block = 0; block < dst_.channel_blocks(); block += kPanelBlocks) {
    const int64_t blocks = std::min(kPanelBlocks, dst_.channel_blocks() - block);
    for (int64_t y = 0; y < rows; ++y) {
      RT_KERNEL(MultiplyBf16Tiles, {.in = buffers.lines + y * window_.SH * lines_.length(),
                                    .pixel_step = lines_.pixel_step(),
                                    .in_block_stride = 0,
                                    .channel_blocks = 1,
                                    .taps = taps_.data(),
                                    .tap_count = std::ssize(taps_),
                                    .weight = weights + block * std::ssize(taps_) * kTileNumbers,
                                    .out_blocks = static_cast<int>(blocks),
                                    .pixels = dst_.W,
                                    .out = buffers.sums,
                                    .out_block_stride = SumFloats()});
      for (int64_t j = 0; j < blocks; ++j) {
        const int64_t row = (sample * dst_.channel_blocks() + block + j) * dst_.H + first + y;
        RT_KERNEL(FinishTileRows,
                  {.from = buffers.sums + j * SumFloats(),
                   .from_row_stride = 0,
                   .to = dst + row * row_numbers,
                   .to_row_stride = 0,
                   .to_pixel_stride = kBlock,
                   .rows = 1,
                   .columns = dst_.W,
                   .bias = t.bias != nullptr ? t.bias + (block + j) * kBlock : nullptr,
                   .add = false,
                   .clamp = activation_ != Activation::kNone,
                   .low = LowerBound(activation_),
                   .high = UpperBound(activation_),
                   .mean = nullptr,
                   .m2 = nullptr,
                   .sums = {}});
      }
    }
  }
}

void ImageTilesForward::Run(const ConvolutionTensors& t) {
  PackWeights(t.weight, t.scratch);
  const int64_t parts = CeilDivide(dst_.H, rows_), items = dst_.N * parts;
  ForEachThread(threads_, [&](int64_t thread) {
    const Buffers mine = {
        ArrayAt<Bfloat16>(t.scratch, lines_at_) + thread * LineNumbers(),
        ArrayAt<float>(t.scratch, sums_at_) + thread * kPanelBlocks * SumFloats()};
    RT_KERNEL(BeginBf16Tiles)();
    for (int64_t i = items * thread / threads_; i < items * (thread + 1) / threads_; ++i) {
      RunPart(t, i / parts, i % parts, mine);
    }
    RT_KERNEL(EndBf16Tiles)();
  });
}

}  // namespace ringtail
