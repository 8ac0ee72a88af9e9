#include "layers/convolution/pointwise/pointwise_bf16_data.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/pointwise/pointwise_bf16_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/element_types/blob_elements.h"

namespace ringtail {
namespace {

constexpr int64_t kLanes = kBf16ProductLanes;
constexpr int64_t kPanelBlocks = 2;
constexpr int64_t kBytes = sizeof(Bfloat16);
// The share of a core's second-level cache that a run of pixels may take, beside two panels of
// weights; and one that is mapped first, which is written and read there.
constexpr int64_t kRunBytes = 256 << 10, kMappedRunBytes = 64 << 10;
constexpr int64_t kMaxRunPixels = 512;
// With fewer pieces per thread, some threads would wait for others.
constexpr int64_t kMinPiecesPerThread = 4;

PixelPieces PiecesOf(const BlobDesc& in, bool is_affine) {
  const int64_t bytes_per_pixel = in.channel_blocks() * kLanes * kBytes;
  const int64_t fit = (is_affine ? kMappedRunBytes : kRunBytes) / bytes_per_pixel;
  return {in.N, in.plane(), std::min(fit, kMaxRunPixels), kPointwiseBf16Pixels};
}

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> PointwiseBf16Data::Create(const ConvolutionProblem& problem,
                                                                ConvolutionDirection direction) {
  const bool is_data = direction == ConvolutionDirection::kForward ||
                       direction == ConvolutionDirection::kBackwardData;
  if (!is_data || !IsPointwiseBf16(problem)) return nullptr;
  return std::make_unique<PointwiseBf16Data>(problem, direction);
}

PointwiseBf16Data::PointwiseBf16Data(const ConvolutionProblem& problem,
                                     ConvolutionDirection direction)
    : forward_(direction == ConvolutionDirection::kForward),
      in_is_affine_(forward_ && problem.src_is_affine),
      activation_(forward_ ? problem.activation : Activation::kNone),
      in_(forward_ ? problem.src : problem.dst),
      out_(forward_ ? problem.dst : problem.src),
      panels_(CeilDivide(out_.channel_blocks(), kPanelBlocks)),
      pieces_(PiecesOf(in_, in_is_affine_)),
      threads_(NumComputeThreads()),
      packed_(scratch_.Add<Bfloat16>(panels_ * PanelSize())),
      bias_(scratch_.Add<float>(panels_ * kPanelBlocks * kLanes)),
      buffers_(scratch_.Add<Bfloat16>(threads_ * BufferSize())) {}

int64_t PointwiseBf16Data::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, out_.channel_blocks() - panel * kPanelBlocks);
}
int64_t PointwiseBf16Data::PanelSize() const {
  return in_.channel_blocks() * kLanes * kPanelBlocks * kLanes;
}
int64_t PointwiseBf16Data::BufferSize() const {
  return in_is_affine_ ? in_.channel_blocks() * kLanes * pieces_.run_pixels() : 0;
}

// The weight of output k and input c lies at weight[k][c] forward, weight[c][k] backward.
void PointwiseBf16Data::PackPanel(const float* weight, int64_t panel, Bfloat16* to) const {
  const int64_t first = panel * kPanelBlocks * kLanes;
  const int64_t k_stride = forward_ ? in_.C : 1;
  RT_KERNEL(PointwiseBf16Pack, {.weight = weight + first * k_stride,
                                .k_stride = k_stride,
                                .c_stride = forward_ ? 1 : out_.C,
                                .outputs = out_.C - first,
                                .channels = in_.C,
                                .panel_blocks = static_cast<int>(PanelBlocks(panel)),
                                .to = to + panel * PanelSize()});
}

const float* PointwiseBf16Data::PackBias(const float* bias, float* to) const {
  if (bias == nullptr) return nullptr;
  std::copy(bias, bias + out_.C, to);
  std::fill(to + out_.C, to + panels_ * kPanelBlocks * kLanes, 0.0F);
  return to;
}

PointwiseBf16Data::Input PointwiseBf16Data::InputOf(const ConvolutionTensors& t,
                                                    const PixelPieces::Run& run,
                                                    Bfloat16* buffer) const {
  const PixelBlocks blocks{in_, run, 0, in_.channel_blocks()};
  const auto* in = ElementsOf<Bfloat16>(forward_ ? t.src : t.diff_dst);
  if (!forward_ || t.src_affine.is_identity()) {
    return {in + blocks.Offset(0, 0), blocks.plane_floats(),
            blocks.Offset(0, 1) - blocks.Offset(0, 0)};
  }
  const int64_t piece = run.pixels * kLanes;
  for (int64_t b = 0; b < blocks.blocks; ++b) {
    for (int64_t i = 0; i < run.pieces; ++i) {
      RT_KERNEL(MapBf16Pixels, in + blocks.Offset(b, i), run.pixels, t.src_affine.From(b * kLanes),
                buffer + (b * run.pieces + i) * piece);
    }
  }
  return {buffer, run.pieces * piece, piece};
}

void PointwiseBf16Data::MultiplyRun(const ConvolutionTensors& t, const PixelPieces::Run& run,
                                    const Range& panels, const float* bias,
                                    Bfloat16* buffer) const {
  const Input in = InputOf(t, run, buffer);
  const auto* packed = ArrayAt<Bfloat16>(t.scratch, packed_);
  auto* out = ElementsOf<Bfloat16>(forward_ ? t.dst : t.diff_src);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const PixelBlocks blocks{out_, run, panel * kPanelBlocks, PanelBlocks(panel)};
    const Bfloat16* weight = packed + panel * PanelSize();
    PointwiseBf16Product product = {
        .in = in.data,
        .in_block_stride = in.block_stride,
        .in_sample_stride = in.sample_stride,
        .channel_blocks = in_.channel_blocks(),
        .weight = weight,
        .next_weight = weight + (panel + 1 < panels.end ? PanelSize() : 0),
        .bias = bias == nullptr ? nullptr : bias + blocks.first_channel(),
        .panel_blocks = static_cast<int>(blocks.blocks),
        .out = out + blocks.Offset(0, 0),
        .out_block_stride = blocks.plane_floats(),
        .out_sample_stride = blocks.Offset(0, 1) - blocks.Offset(0, 0),
        .pieces = run.pieces,
        .pixels = run.pixels,
        .add = t.add_to_diff_src,
        .clamp = activation_ != Activation::kNone,
        .low = LowerBound(activation_),
        .high = UpperBound(activation_),
        .mean = nullptr,
        .m2 = nullptr,
        .moments_stride = 0,
        .sums = {}};
    if (t.dst_moments) TakeMoments(t.dst_moments, blocks, &product);
    if (t.diff_src_sums) TakeSums(t, blocks, &product);
    RT_KERNEL(PointwiseBf16Multiply, product);
  }
}

void PointwiseBf16Data::TakeMoments(const BlobMoments& moments, const PixelBlocks& blocks,
                                    PointwiseBf16Product* product) const {
  const PixelPieces::Run& run = blocks.run;
  const int64_t part = run.first / moments.part_pixels;
  const int64_t at = moments.At(out_, run.sample, part, blocks.first_block);
  product->mean = moments.mean + at;
  product->m2 = moments.m2 + at;
  product->moments_stride = moments.At(out_, 1, 0, 0);
}

void PointwiseBf16Data::TakeSums(const ConvolutionTensors& t, const PixelBlocks& blocks,
                                 PointwiseBf16Product* product) const {
  const BlobGradientSums& sums = t.diff_src_sums;
  const PixelPieces::Run& run = blocks.run;
  const int64_t part = run.first / sums.part_pixels;
  const int64_t at = sums.At(out_, run.sample, part, blocks.first_block);
  product->sums = {.src = ElementsOf<Bfloat16>(t.src) + blocks.Offset(0, 0),
                   .affine = t.src_affine.From(blocks.first_channel()),
                   .g = sums.g + at,
                   .gx = sums.gx + at,
                   .stride = sums.At(out_, 1, 0, 0)};
}

void PointwiseBf16Data::Run(const ConvolutionTensors& t) {
  auto* packed = ArrayAt<Bfloat16>(t.scratch, packed_);
  auto* buffers = ArrayAt<Bfloat16>(t.scratch, buffers_);
  const float* bias = PackBias(forward_ ? t.bias : nullptr, ArrayAt<float>(t.scratch, bias_));
  ParallelFor(panels_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) PackPanel(t.weight, panel, packed);
  });
  const int64_t pieces = pieces_.count();
  const bool by_panel = pieces % threads_ != 0 && pieces < threads_ * kMinPiecesPerThread;
  ForEachThread(threads_, [&](int64_t thread) {
    const auto part = [&](int64_t n) {
      return Range{n * thread / threads_, n * (thread + 1) / threads_};
    };
    const Range panels = by_panel ? part(panels_) : Range{0, panels_};
    const Range mine = by_panel ? Range{0, pieces} : part(pieces);
    pieces_.ForEachRun(mine.begin, mine.end, [&](const auto& run, const auto& /*next*/) {
      MultiplyRun(t, run, panels, bias, buffers + thread * BufferSize());
    });
  });
}

}  // namespace ringtail
