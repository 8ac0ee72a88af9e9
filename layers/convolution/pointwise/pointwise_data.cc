#include "layers/convolution/pointwise/pointwise_data.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/streaming.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

constexpr int64_t kPanelBlocks = 2;
constexpr int64_t kFloatBytes = sizeof(float);
// The share of a core's second-level cache that a run of pixels may take, beside two panels of
// weights of kMaxPassChannels channels.
constexpr int64_t kRunBytes = 256 << 10;
constexpr int64_t kMappedRunBytes = 16 << 10;  // in the first-level cache, once it is mapped
constexpr int64_t kMaxPassChannels = 640;
constexpr int64_t kMaxRunPixels = 256;
// With fewer pieces per thread, some threads would wait for others.
constexpr int64_t kMinPiecesPerThread = 4;

// Passes of nearly the same size.
int64_t PassChannels(const BlobDesc& in) {
  const int64_t passes = CeilDivide(in.C, kMaxPassChannels);
  return CeilDivide(in.channel_blocks(), passes) * in.block;
}

}  // namespace

PointwiseData::PointwiseData(const ConvolutionProblem& problem, ConvolutionDirection direction)
    : forward_(direction == ConvolutionDirection::kForward),
      in_is_affine_(forward_ && problem.src_is_affine),
      activation_(forward_ ? problem.activation : Activation::kNone),
      in_(forward_ ? problem.src : problem.dst),
      out_(forward_ ? problem.dst : problem.src),
      lanes_(in_.block),
      panels_(CeilDivide(out_.channel_blocks(), kPanelBlocks)),
      pass_channels_(PassChannels(in_)),
      pieces_(
          in_.N, in_.plane(),
          std::min((in_is_affine_ ? kMappedRunBytes : kRunBytes) / (pass_channels_ * kFloatBytes),
                   kMaxRunPixels),
          RT_KERNEL(PointwisePixelGroup)()),
      threads_(NumComputeThreads()),
      packed_(scratch_.AddBytes(packed_bytes())),
      bias_(scratch_.Add<float>(panels_ * kPanelBlocks * lanes_)),
      buffers_(scratch_.Add<float>(threads_ * BufferFloats())) {}

int64_t PointwiseData::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, out_.channel_blocks() - panel * kPanelBlocks);
}
int64_t PointwiseData::PanelFloats() const { return in_.C * kPanelBlocks * lanes_; }

int64_t PointwiseData::BufferFloats() const {
  return in_is_affine_ ? pass_channels_ * pieces_.run_pixels() : 0;
}

size_t PointwiseData::packed_bytes() const { return panels_ * PanelFloats() * kFloatBytes; }

// The weight of output k and input c lies at weight[k][c] forward, weight[c][k] backward.
void PointwiseData::PackPanel(const float* weight, int64_t panel, float* to) const {
  const int64_t first = panel * kPanelBlocks * lanes_;
  const int64_t k_stride = forward_ ? in_.C : 1;
  RT_KERNEL(PointwisePack, {.weight = weight + first * k_stride,
                            .k_stride = k_stride,
                            .c_stride = forward_ ? 1 : out_.C,
                            .outputs = out_.C - first,
                            .channels = in_.C,
                            .panel_blocks = static_cast<int>(PanelBlocks(panel)),
                            .to = to + panel * PanelFloats()});
}

const float* PointwiseData::PackBias(const float* bias, float* to) const {
  if (bias == nullptr) return nullptr;
  std::copy(bias, bias + out_.C, to);
  std::fill(to + out_.C, to + panels_ * kPanelBlocks * lanes_, 0.0f);
  return to;
}

void PointwiseData::MultiplyPanels(const Call& call, const PixelPieces::Run& run,
                                   const PixelPieces::Run& next, const Range& panels,
                                   float* buffer) const {
  for (int64_t channel = 0; channel < in_.C; channel += pass_channels_) {
    const int64_t first = channel / lanes_;
    const int64_t blocks = std::min(pass_channels_ / lanes_, in_.channel_blocks() - first);
    const PixelView in = View({in_, run, first, blocks}, call.in, call.in_affine, buffer);
    // Without a map `in` is itself what comes from memory.
    const PixelView fetch =
        call.in_affine.is_identity() ? PixelView{} : View({in_, next, first, blocks}, call.in);
    MultiplyPass(call, run, in, fetch, channel, panels);
  }
}

// `in`: the channels from first_channel on.
void PointwiseData::MultiplyPass(const Call& call, const PixelPieces::Run& run, const PixelView& in,
                                 const PixelView& fetch, int64_t first_channel,
                                 const Range& panels) const {
  const int64_t channels = std::min(pass_channels_, in_.C - first_channel);
  const bool last_pass = first_channel + channels == in_.C;
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const PixelBlocks blocks{out_, run, panel * kPanelBlocks, PanelBlocks(panel)};
    const int64_t first_output = blocks.first_block * lanes_;
    const float* weight = call.weight + panel * PanelFloats();
    const float* weights_of_pass = weight + first_channel * blocks.blocks * lanes_;
    const PixelView out = View(blocks, call.out);
    PointwiseProduct product = {
        .in = in.data,
        .in_block_stride = in.block_stride,
        .in_sample_stride = in.sample_stride,
        .fetch = {},
        .channels = channels,
        .weight = weights_of_pass,
        .next_weight = weights_of_pass + (panel + 1 < panels.end ? PanelFloats() : 0),
        .bias = call.bias == nullptr || !last_pass ? nullptr : call.bias + first_output,
        .panel_blocks = static_cast<int>(blocks.blocks),
        .outputs = out_.C - first_output,
        .out = call.out + blocks.Offset(0, 0),
        .out_block_stride = out.block_stride,
        .out_sample_stride = out.sample_stride,
        .pieces = run.pieces,
        .pixels = run.pixels,
        .accumulate = call.add || first_channel > 0,
        .clamp = activation_ != Activation::kNone && last_pass,
        .low = LowerBound(activation_),
        .high = UpperBound(activation_),
        .stream = call.stream && last_pass};
    if (panel == panels.begin) product.fetch = Fetch(fetch);  // once per run
    if (last_pass && call.moments) TakeMoments(call, blocks, &product);
    if (last_pass && call.sums) TakeSums(call, blocks, &product);
    RT_KERNEL(PointwiseMultiply, product);
  }
}

void PointwiseData::TakeMoments(const Call& call, const PixelBlocks& blocks,
                                PointwiseProduct* product) const {
  const BlobMoments& moments = call.moments;
  const PixelPieces::Run& run = blocks.run;
  const int64_t part = run.first / moments.part_pixels;
  const int64_t at = moments.At(out_, run.sample, part, blocks.first_block);
  product->mean = moments.mean + at;
  product->m2 = moments.m2 + at;
  product->moments_stride = moments.At(out_, 1, 0, 0);
}

void PointwiseData::TakeSums(const Call& call, const PixelBlocks& blocks,
                             PointwiseProduct* product) const {
  const BlobGradientSums& sums = call.sums;
  const PixelPieces::Run& run = blocks.run;
  const int64_t part = run.first / sums.part_pixels;
  const int64_t at = sums.At(out_, run.sample, part, blocks.first_block);
  product->sums = {.src = call.src + blocks.Offset(0, 0),
                   .affine = call.src_affine.From(blocks.first_channel()),
                   .g = sums.g + at,
                   .gx = sums.gx + at,
                   .stride = sums.At(out_, 1, 0, 0)};
}

void PointwiseData::PackWeights(const float* weight, float* packed) const {
  ParallelFor(panels_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) PackPanel(weight, panel, packed);
  });
}

bool PointwiseData::Streams(const float* out) const {
  return IsWorthStreaming(out_) && CanStreamTo(out);
}

void PointwiseData::MultiplyRun(const float* packed, const PixelPieces::Run& run,
                                const PixelView& diff_dst, const PixelView& fetch,
                                const ConvolutionTensors& t) const {
  const Call call = {.weight = packed,
                     .out = t.diff_src,
                     .stream = Streams(t.diff_src),
                     .add = t.add_to_diff_src,
                     .src = t.src,
                     .src_affine = t.src_affine,
                     .sums = t.diff_src_sums};
  for (int64_t channel = 0; channel < in_.C; channel += pass_channels_) {
    PixelView in = diff_dst;
    in.data += channel / lanes_ * in.block_stride;
    MultiplyPass(call, run, in, fetch, channel, {0, panels_});
  }
}

void PointwiseData::Run(const ConvolutionTensors& tensors) {
  float* weight = ArrayAt<float>(tensors.scratch, packed_);
  float* bias = ArrayAt<float>(tensors.scratch, bias_);
  float* buffers = ArrayAt<float>(tensors.scratch, buffers_);
  float* out = forward_ ? tensors.dst : tensors.diff_src;
  const Call call = {.in = forward_ ? tensors.src : tensors.diff_dst,
                     .in_affine = forward_ ? tensors.src_affine : ChannelAffine(),
                     .weight = weight,
                     .bias = PackBias(forward_ ? tensors.bias : nullptr, bias),
                     .out = out,
                     .moments = tensors.dst_moments,
                     .stream = Streams(out),
                     .add = tensors.add_to_diff_src,
                     .src = tensors.src,
                     .src_affine = tensors.src_affine,
                     .sums = tensors.diff_src_sums};
  PackWeights(tensors.weight, weight);
  const int64_t pieces = pieces_.count();
  const bool by_panel = pieces % threads_ != 0 && pieces < threads_ * kMinPiecesPerThread;
  ForEachThread(threads_, [&](int64_t t) {
    const auto part = [&](int64_t n) { return Range{n * t / threads_, n * (t + 1) / threads_}; };
    const Range panels = by_panel ? part(panels_) : Range{0, panels_};
    const Range mine = by_panel ? Range{0, pieces} : part(pieces);
    pieces_.ForEachRun(mine.begin, mine.end, [&](const auto& run, const auto& next) {
      MultiplyPanels(call, run, next, panels, buffers + t * BufferFloats());
    });
  });
}

}  // namespace ringtail
