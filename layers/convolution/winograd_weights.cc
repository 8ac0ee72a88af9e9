#include "layers/convolution/winograd_weights.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/kernels/winograd_filter.h"
#include "layers/kernels/winograd_multiply.h"

namespace ringtail {
namespace {

constexpr int64_t kFilterTaps = 9;
constexpr int64_t kLineFloats = 16;             // see winograd_data.cc
constexpr int64_t kBytesOfVAndZ = 8 << 20;      // of a block of tiles: third-level cache
constexpr int64_t kMinBlockTiles = 32;          // shorter sums would not pay for reading dU again

}  // namespace

WinogradWeights::WinogradWeights(const WinogradProblem& problem)
    : tile_(problem.tile),
      slices_(problem.slices()),
      lanes_(RT_KERNEL(WinogradLanes)()),
      channels_(problem.src.C),
      channel_blocks_(problem.src.channel_blocks()),
      outputs_(problem.dst.C),
      output_blocks_(problem.dst.channel_blocks()),
      input_(problem.Grid(problem.src, problem.window.PT, problem.window.PL, problem.dst)),
      gradient_(problem.Grid(problem.dst, 0, 0, problem.dst)),
      tiles_(problem.dst.N * input_.tiles_y * input_.tiles_x) {
  RT_CHECK(problem.IsSupported(), "not a convolution for Winograd");
  const int64_t bytes_per_tile =
      slices_ * (channels_ + outputs_) * static_cast<int64_t>(sizeof(float));
  const int64_t fit = std::max(kBytesOfVAndZ / bytes_per_tile, kMinBlockTiles);
  const int64_t blocks = (tiles_ + fit - 1) / fit;
  block_tiles_ = (tiles_ + blocks - 1) / blocks;
}

int64_t WinogradWeights::SliceOfV() const {
  return channel_blocks_ * block_tiles_ * lanes_ + kLineFloats;
}
int64_t WinogradWeights::SliceOfZ() const {
  return output_blocks_ * block_tiles_ * lanes_ + kLineFloats;
}
int64_t WinogradWeights::SliceOfDu() const { return lanes_ * outputs_ + kLineFloats; }

size_t WinogradWeights::scratch_bytes() const {
  const int64_t floats = slices_ * (SliceOfV() + SliceOfZ() + channel_blocks_ * SliceOfDu());
  return static_cast<size_t>(outputs_) * sizeof(double) +
         static_cast<size_t>(floats) * sizeof(float);
}

WinogradWeights::Buffers WinogradWeights::Split(std::byte* scratch) const {
  Buffers buffers;
  buffers.bias = reinterpret_cast<double*>(scratch);
  buffers.v = reinterpret_cast<float*>(buffers.bias + outputs_);
  buffers.z = buffers.v + slices_ * SliceOfV();
  buffers.du = buffers.z + slices_ * SliceOfZ();
  return buffers;
}

void WinogradWeights::Run(const float* src, const float* diff_dst, float* diff_weight,
                          float* diff_bias, std::byte* scratch) const {
  const Buffers buffers = Split(scratch);
  std::fill_n(buffers.bias, outputs_, 0.0);
  for (int64_t first = 0; first < tiles_; first += block_tiles_) {
    const int64_t last = std::min(tiles_, first + block_tiles_);
    Transform(src, diff_dst, first, last, buffers);
    Multiply(buffers.v, buffers.z, last - first, /*accumulate=*/first > 0, buffers.du);
  }
  TransformBack(buffers.du, diff_weight);
  if (diff_bias == nullptr) return;
  for (int64_t k = 0; k < outputs_; ++k) diff_bias[k] = static_cast<float>(buffers.bias[k]);
}

void WinogradWeights::Transform(const float* src, const float* diff_dst, int64_t first,
                                int64_t last, const Buffers& buffers) const {
  const int64_t offset = block_tiles_ * lanes_;
  // The slice of the points (1, 1) is the sum over a tile: what the bias's gradient sums.
  const int64_t sums = (tile_ + 2 + 1) * SliceOfZ();
  ParallelFor(channel_blocks_ + output_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i < channel_blocks_) {
        RT_KERNEL(WinogradInput)
        (tile_, input_, src + i * input_.H * input_.W * lanes_, first, last,
         buffers.v + i * offset, SliceOfV());
        continue;
      }
      const int64_t k = i - channel_blocks_;
      float* z = buffers.z + k * offset;
      RT_KERNEL(WinogradGradient)
      (tile_, gradient_, diff_dst + k * gradient_.H * gradient_.W * lanes_, first, last, z,
       SliceOfZ());
      RT_KERNEL(WinogradSumTiles)(z + sums, last - first, buffers.bias + k * lanes_);
    }
  });
}

void WinogradWeights::Multiply(const float* v, const float* z, int64_t tiles, bool accumulate,
                               float* du) const {
  ParallelFor(slices_ * channel_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t slice = i / channel_blocks_, block = i % channel_blocks_;
      RT_KERNEL(WinogradMultiplyGradient)
      ({.v = v + slice * SliceOfV() + block * block_tiles_ * lanes_,
        .z = z + slice * SliceOfZ(),
        .z_block_stride = block_tiles_ * lanes_,
        .k_blocks = output_blocks_,
        .tiles = tiles,
        .du = du + (block * slices_ + slice) * SliceOfDu(),
        .du_stride = outputs_,
        .accumulate = accumulate});
    }
  });
}

void WinogradWeights::TransformBack(const float* du, float* diff_weight) const {
  const WinogradFilters filters = {.lane_stride = channels_ * kFilterTaps,
                                   .channel_stride = kFilterTaps,
                                   .channels = lanes_,
                                   .turned = false};
  ParallelFor(channel_blocks_ * output_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / output_blocks_, k = i % output_blocks_;
      RT_KERNEL(WinogradFilterGradient)
      (tile_, filters, du + block * slices_ * SliceOfDu() + k * lanes_, outputs_, SliceOfDu(),
       diff_weight + (k * lanes_ * channels_ + block * lanes_) * kFilterTaps);
    }
  });
}

}  // namespace ringtail
