#include "layers/convolution/image/image_bf16_weights.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kLanes = kBf16ProductLanes, kPair = 2 * kLanes;
constexpr int64_t kMostSlots = 16;  // work for as many threads
// Expanded lines and diff_dst of a part: a share of the second-level cache.
constexpr int64_t kBytesOfPart = 384 << 10;

}  // namespace

ImageBf16Weights::ImageBf16Weights(const ConvolutionProblem& problem)
    : lines_(problem),
      window_(problem.window),
      channels_(problem.src.C),
      dst_(problem.dst),
      slots_(std::min(dst_.N, kMostSlots)),
      threads_(NumComputeThreads()) {
  const int64_t bytes_per_line = Pairs() * kPair * static_cast<int64_t>(sizeof(Bfloat16));
  const int64_t fit = kBytesOfPart / bytes_per_line - TapBlocks() * window_.KH;
  rows_ = EqualBlocks(dst_.H, fit / (TapBlocks() * window_.SH + dst_.channel_blocks()), 1);
  sums_at_ = scratch_.Add<float>(slots_ * SumSize());
  bias_at_ = scratch_.Add<double>(slots_ * dst_.C);
  lines_at_ = scratch_.Add<Bfloat16>(threads_ * lines_.LinesOf(rows_) * lines_.length());
  expanded_at_ = scratch_.Add<Bfloat16>(threads_ * TapBlocks() * window_.SH * PhaseSize());
  diff_dst_at_ = scratch_.Add<Bfloat16>(threads_ * dst_.channel_blocks() * rows_ * Pairs() * kPair);
}

int64_t ImageBf16Weights::TapBlocks() const { return CeilDivide(lines_.taps(), kLanes); }
int64_t ImageBf16Weights::Pairs() const { return CeilDivide(dst_.W, 2); }
int64_t ImageBf16Weights::SumRows() const { return RoundUp(lines_.taps(), kBf16ProductRows); }

// To [block of taps][phase][line of the phase][pair][16][2].
void ImageBf16Weights::Expand(const Bfloat16* lines, int64_t rows, Bfloat16* expanded) const {
  for (int64_t l = 0; l < lines_.LinesOf(rows); ++l) {
    const int64_t phase = l % window_.SH, at = l / window_.SH;
    RT_KERNEL(ExpandImageLine, lines + l * lines_.length(), lines_.pixel_step(), TapBlocks(),
              Pairs(), expanded + phase * PhaseSize() + at * Pairs() * kPair,
              window_.SH * PhaseSize());
  }
}

// Rows [first, first + rows_) of a sample.
void ImageBf16Weights::AddPart(const ConvolutionTensors& t, int64_t sample, int64_t first,
                               const Buffers& buffers, float* sums, double* bias) const {
  const int64_t rows = std::min(rows_, dst_.H - first), blocks = dst_.channel_blocks();
  lines_.Pack(t.src, sample, first, rows, buffers.lines);
  Expand(buffers.lines, rows, buffers.expanded);
  const int64_t block_size = rows_ * Pairs() * kPair;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t plane = (sample * blocks + block) * dst_.plane();
    const Bfloat16* from = ElementsOf<Bfloat16>(t.diff_dst) + (plane + first * dst_.W) * kLanes;
    for (int64_t y = 0; y < rows; ++y) {
      RT_KERNEL(InterleaveBf16Pixels, from + y * dst_.W * kLanes, dst_.W,
                buffers.diff_dst + block * block_size + y * Pairs() * kPair);
    }
    if (t.diff_bias != nullptr) {
      RT_KERNEL(AddBf16Pixels, from, rows * dst_.W, bias + block * kLanes);
    }
  }
  for (int64_t line = 0; line < window_.KH; ++line) {
    const int64_t phase = line % window_.SH, at = line / window_.SH;
    RT_KERNEL(MultiplyBf16Gradient,
              {.rows = buffers.expanded + phase * PhaseSize() + at * Pairs() * kPair,
               .rows_block_stride = window_.SH * PhaseSize(),
               .row_channels = SumRows(),
               .columns = buffers.diff_dst,
               .columns_block_stride = block_size,
               .column_blocks = blocks,
               .pairs = rows * Pairs(),
               .sum = sums + line * SumRows() * dst_.C,
               .sum_stride = dst_.C,
               .accumulate = true});
  }
}

void ImageBf16Weights::AddSlot(const ConvolutionTensors& t, int64_t slot,
                               const Buffers& buffers) const {
  float* const sums = ArrayAt<float>(t.scratch, sums_at_) + slot * SumSize();
  double* const bias = ArrayAt<double>(t.scratch, bias_at_) + slot * dst_.C;
  std::fill_n(sums, SumSize(), 0.0F);
  std::fill_n(bias, dst_.C, 0.0);
  const int64_t end = dst_.N * (slot + 1) / slots_;
  for (int64_t sample = dst_.N * slot / slots_; sample < end; ++sample) {
    for (int64_t first = 0; first < dst_.H; first += rows_) {
      AddPart(t, sample, first, buffers, sums, bias);
    }
  }
}

// Adds up the slots, in order.
void ImageBf16Weights::Write(const ConvolutionTensors& t) const {
  const float* sums = ArrayAt<float>(t.scratch, sums_at_);
  const double* bias = ArrayAt<double>(t.scratch, bias_at_);
  ParallelFor(dst_.C, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      for (int64_t line = 0; line < window_.KH; ++line) {
        for (int64_t i = 0; i < lines_.taps(); ++i) {
          float total = 0;
          for (int64_t slot = 0; slot < slots_; ++slot) {
            total += sums[slot * SumSize() + (line * SumRows() + i) * dst_.C + k];
          }
          const int64_t filter = k * channels_ + i % channels_;
          t.diff_weight[(filter * window_.KH + line) * window_.KW + i / channels_] = total;
        }
      }
    }
  });
  if (t.diff_bias == nullptr) return;
  for (int64_t k = 0; k < dst_.C; ++k) {
    double total = 0;
    for (int64_t slot = 0; slot < slots_; ++slot) total += bias[slot * dst_.C + k];
    t.diff_bias[k] = static_cast<float>(total);
  }
}

void ImageBf16Weights::Run(const ConvolutionTensors& t) {
  auto* lines = ArrayAt<Bfloat16>(t.scratch, lines_at_);
  auto* expanded = ArrayAt<Bfloat16>(t.scratch, expanded_at_);
  auto* diff_dst = ArrayAt<Bfloat16>(t.scratch, diff_dst_at_);
  ForEachThread(threads_, [&](int64_t thread) {
    const Buffers mine = {
        .lines = lines + thread * lines_.LinesOf(rows_) * lines_.length(),
        .expanded = expanded + thread * TapBlocks() * window_.SH * PhaseSize(),
        .diff_dst = diff_dst + thread * dst_.channel_blocks() * rows_ * Pairs() * kPair};
    for (int64_t slot = slots_ * thread / threads_; slot < slots_ * (thread + 1) / threads_;
         ++slot) {
      AddSlot(t, slot, mine);
    }
  });
  Write(t);
}

}  // namespace ringtail
