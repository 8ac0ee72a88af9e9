#include "layers/convolution/pointwise_data.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "layers/kernels/pointwise.h"

namespace ringtail {
namespace {

constexpr int64_t kPanelBlocks = 2;
constexpr int64_t kFloatBytes = sizeof(float);
constexpr size_t kLine = 64;
// What a run of pixels may take of a core's second-level cache, beside two panels of weights of so
// many channels.
constexpr int64_t kRunBytes = 256 << 10;
constexpr int64_t kMaxPassChannels = 640;
constexpr int64_t kMaxRunPixels = 256;
// A larger result has left the caches before the next layer reads it, so that it need not enter.
constexpr int64_t kStreamBytes = 16 << 20;
// With fewer pieces per thread, some threads would wait for others.
constexpr int64_t kMinPiecesPerThread = 4;

// Passes of nearly the same size.
int64_t PassChannels(const BlobDesc& in) {
  const int64_t passes = (in.C + kMaxPassChannels - 1) / kMaxPassChannels;
  return (in.channel_blocks() + passes - 1) / passes * in.block;
}

}  // namespace

PointwiseData::PointwiseData(const ConvolutionProblem& problem, ConvolutionDirection direction)
    : forward_(direction == ConvolutionDirection::kForward),
      activation_(forward_ ? problem.activation : Activation::kNone),
      in_(forward_ ? problem.src : problem.dst),
      out_(forward_ ? problem.dst : problem.src),
      lanes_(in_.block),
      panels_((out_.channel_blocks() + kPanelBlocks - 1) / kPanelBlocks),
      pass_channels_(PassChannels(in_)),
      pieces_(in_.N, in_.plane(),
              std::min(kRunBytes / (pass_channels_ * kFloatBytes), kMaxRunPixels),
              RT_KERNEL(PointwisePixelGroup)()) {}

int64_t PointwiseData::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, out_.channel_blocks() - panel * kPanelBlocks);
}
int64_t PointwiseData::PanelFloats() const { return in_.C * kPanelBlocks * lanes_; }

size_t PointwiseData::scratch_bytes() const {
  return panels_ * (PanelFloats() + kPanelBlocks * lanes_) * kFloatBytes;  // weights and bias
}

// The weight of output k and input c lies at weight[k][c] forward, weight[c][k] backward.
void PointwiseData::PackPanel(const float* weight, int64_t panel, float* to) const {
  const int64_t first = panel * kPanelBlocks * lanes_;
  const int64_t k_stride = forward_ ? in_.C : 1;
  RT_KERNEL(PointwisePack)
  ({.weight = weight + first * k_stride,
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
                                   int64_t first_panel, int64_t last_panel) const {
  for (int64_t channel = 0; channel < in_.C; channel += pass_channels_) {
    MultiplyPass(call, run, channel, first_panel, last_panel);
  }
}

void PointwiseData::MultiplyPass(const Call& call, const PixelPieces::Run& run,
                                 int64_t first_channel, int64_t first_panel,
                                 int64_t last_panel) const {
  const int64_t in_block = in_.plane() * lanes_, in_sample = in_.channel_blocks() * in_block;
  const int64_t out_block = out_.plane() * lanes_, out_sample = out_.channel_blocks() * out_block;
  const int64_t channels = std::min(pass_channels_, in_.C - first_channel);
  const bool last_pass = first_channel + channels == in_.C;
  const float* in =
      call.in + run.sample * in_sample + first_channel / lanes_ * in_block + run.first * lanes_;
  float* out = call.out + run.sample * out_sample + run.first * lanes_;
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    const int64_t block = panel * kPanelBlocks;
    const float* weight = call.weight + panel * PanelFloats();
    const float* weights_of_pass = weight + first_channel * PanelBlocks(panel) * lanes_;
    RT_KERNEL(PointwiseMultiply)
    ({.in = in,
      .in_block_stride = in_block,
      .in_sample_stride = in_sample,
      .channels = channels,
      .weight = weights_of_pass,
      .next_weight = weights_of_pass + (panel + 1 < last_panel ? PanelFloats() : 0),
      .bias = call.bias == nullptr || !last_pass ? nullptr : call.bias + block * lanes_,
      .panel_blocks = static_cast<int>(PanelBlocks(panel)),
      .outputs = out_.C - block * lanes_,
      .out = out + block * out_block,
      .out_block_stride = out_block,
      .out_sample_stride = out_sample,
      .pieces = run.pieces,
      .pixels = run.pixels,
      .accumulate = first_channel > 0,
      .clamp = activation_ != Activation::kNone && last_pass,
      .low = LowerBound(activation_),
      .high = UpperBound(activation_),
      .stream = call.stream && last_pass});
  }
}

void PointwiseData::Run(const ConvolutionTensors& tensors) {
  float* weight = reinterpret_cast<float*>(tensors.scratch);
  float* out = forward_ ? tensors.dst : tensors.diff_src;
  const Call call = {
      .in = forward_ ? tensors.src : tensors.diff_dst,
      .weight = weight,
      .bias = PackBias(forward_ ? tensors.bias : nullptr, weight + panels_ * PanelFloats()),
      .out = out,
      .stream = out_.bytes() >= kStreamBytes && reinterpret_cast<uintptr_t>(out) % kLine == 0};
  const int64_t pieces = pieces_.count(), threads = NumComputeThreads();
  ParallelFor(panels_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) PackPanel(tensors.weight, panel, weight);
  });
  if (pieces % threads != 0 && pieces < threads * kMinPiecesPerThread) {
    ParallelFor(panels_, 1, [&](int64_t begin, int64_t end) {
      pieces_.ForEachRun(
          0, pieces, [&](const PixelPieces::Run& run) { MultiplyPanels(call, run, begin, end); });
    });
    return;
  }
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    pieces_.ForEachRun(begin, end,
                       [&](const PixelPieces::Run& run) { MultiplyPanels(call, run, 0, panels_); });
  });
}

}  // namespace ringtail
