#include "layers/convolution/image/image_bf16_forward.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kLanes = kBf16ProductLanes;
constexpr int64_t kPanelBlocks = 2;
constexpr int64_t kBytesOfLines = 96 << 10;  // a share of the second-level cache

}  // namespace

ImageBf16Forward::ImageBf16Forward(const ConvolutionProblem& problem)
    : lines_(problem),
      window_(problem.window),
      channels_(problem.src.C),
      dst_(problem.dst),
      activation_(problem.activation),
      panels_(CeilDivide(dst_.channel_blocks(), kPanelBlocks)),
      rows_(lines_.RowsThatFit(kBytesOfLines, dst_.H)),
      threads_(NumComputeThreads()),
      packed_at_(scratch_.Add<Bfloat16>(panels_ * PanelSize())),
      lines_at_(scratch_.Add<Bfloat16>(threads_ * lines_.LinesOf(rows_) * lines_.length())) {}

int64_t ImageBf16Forward::Pairs() const { return CeilDivide(lines_.taps(), 2); }
int64_t ImageBf16Forward::PanelSize() const {
  return window_.KH * Pairs() * kPanelBlocks * kLanes * 2;
}

// weight (K, C, KH, KW) to [panel][line][pair][k][2]: number i of a line is tap i / C, channel i % C.
void ImageBf16Forward::PackWeights(const float* weight, Bfloat16* packed) const {
  for (int64_t panel = 0; panel < panels_; ++panel) {
    const int64_t first = panel * kPanelBlocks * kLanes;
    const int64_t outputs = std::min(kPanelBlocks * kLanes, dst_.C - first);
    Bfloat16* to = packed + panel * PanelSize();
    for (int64_t line = 0; line < window_.KH; ++line) {
      for (int64_t pair = 0; pair < Pairs(); ++pair) {
        for (int64_t k = first; k < first + outputs; ++k) {
          for (int64_t i = 2 * pair; i < 2 * pair + 2; ++i, ++to) {
            const int64_t filter = k * channels_ + i % channels_;
            *to = i < lines_.taps()
                      ? Narrow(weight[(filter * window_.KH + line) * window_.KW + i / channels_])
                      : Bfloat16{};
          }
        }
      }
    }
  }
}

void ImageBf16Forward::RunPart(const ConvolutionTensors& t, int64_t sample, int64_t part,
                               Bfloat16* lines) const {
  const int64_t first = part * rows_, rows = std::min(rows_, dst_.H - first);
  lines_.Pack(t.src, sample, first, rows, lines);
  const auto* packed = ArrayAt<Bfloat16>(t.scratch, packed_at_);
  auto* dst = ElementsOf<Bfloat16>(t.dst);
  const int64_t plane = dst_.plane() * kLanes;
  for (int64_t panel = 0; panel < panels_; ++panel) {
    const int64_t block = panel * kPanelBlocks;
    ImageBf16Product product = {
        .in = lines,
        .line_stride = lines_.length(),
        .row_lines = window_.SH,
        .pixel_step = lines_.pixel_step(),
        .lines = window_.KH,
        .pairs = Pairs(),
        .weight = packed + panel * PanelSize(),
        .bias = t.bias != nullptr ? t.bias + block * kLanes : nullptr,
        .panel_blocks = static_cast<int>(std::min(kPanelBlocks, dst_.channel_blocks() - block)),
        .clamp = activation_ != Activation::kNone,
        .low = LowerBound(activation_),
        .high = UpperBound(activation_),
        .dst = dst + (sample * dst_.channel_blocks() + block) * plane + first * dst_.W * kLanes,
        .dst_block_stride = plane,
        .rows = rows,
        .columns = dst_.W,
        .mean = nullptr,
        .m2 = nullptr};
    if (t.dst_moments) {
      const int64_t at = t.dst_moments.At(dst_, sample, part, block);
      product.mean = t.dst_moments.mean + at;
      product.m2 = t.dst_moments.m2 + at;
    }
    RT_KERNEL(ImageBf16Multiply, product);
  }
}

void ImageBf16Forward::Run(const ConvolutionTensors& t) {
  PackWeights(t.weight, ArrayAt<Bfloat16>(t.scratch, packed_at_));
  auto* lines = ArrayAt<Bfloat16>(t.scratch, lines_at_);
  const int64_t parts = CeilDivide(dst_.H, rows_), items = dst_.N * parts;
  ForEachThread(threads_, [&](int64_t thread) {
    Bfloat16* const mine = lines + thread * lines_.LinesOf(rows_) * lines_.length();
    for (int64_t i = items * thread / threads_; i < items * (thread + 1) / threads_; ++i) {
      RunPart(t, i / parts, i % parts, mine);
    }
  });
}

}  // namespace ringtail
