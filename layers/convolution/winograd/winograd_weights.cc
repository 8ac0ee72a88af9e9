#include "layers/convolution/winograd/winograd_weights.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_operands.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

constexpr int64_t kFilterTaps = 9;
constexpr int64_t kLineBytes = 64;  // see winograd_data.cc
constexpr int64_t kLineFloats = kLineBytes / static_cast<int64_t>(sizeof(float));
// V and Z of a block of tiles: a share of the third-level cache.
constexpr int64_t kBytesOfVAndZ = 8 << 20;
constexpr int64_t kBytesOfVAndZByFilters = 20 << 20;
constexpr int64_t kMinBlockTiles = 32;  // shorter sums would not pay for reading dU again
constexpr int64_t kMaxBytesOfDuBySlices = 4 << 20;
constexpr int64_t kPartBlocks = 15;  // of k: with all slices, what a second-level cache holds

template <typename Operand>
constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(Operand));

}  // namespace

template <typename Operand>
WinogradWeights<Operand>::WinogradWeights(const WinogradProblem& problem, int threads)
    : tile_(problem.tile),
      slices_(problem.slices()),
      lanes_(RT_KERNEL(WinogradLanes)()),
      threads_(threads),
      channels_(problem.src.C),
      channel_blocks_(problem.src.channel_blocks()),
      outputs_(problem.dst.C),
      output_blocks_(problem.dst.channel_blocks()),
      input_(problem.Grid(problem.src, problem.window.PT, problem.window.PL, problem.dst)),
      gradient_(problem.Grid(problem.dst, 0, 0, problem.dst)),
      tiles_(problem.dst.N * input_.tiles_y * input_.tiles_x) {
  constexpr int64_t kFloat = sizeof(float), kOperand = sizeof(Operand);
  RT_CHECK(kOperand < kFloat ? problem.SupportsBf16() : problem.IsSupported(),
           "not a convolution for Winograd");
  by_filters_ = slices_ * channels_ * outputs_ * kFloat > kMaxBytesOfDuBySlices;
  const int64_t bytes_per_tile = slices_ * (channels_ + outputs_) * kOperand;
  const int64_t fit = (by_filters_ ? kBytesOfVAndZByFilters : kBytesOfVAndZ) / bytes_per_tile;
  block_tiles_ = RoundUp(CeilDivide(tiles_, CeilDivide(tiles_, std::max(fit, kMinBlockTiles))),
                         WinogradOperands<Operand>::kTiles);
  k_parts_ = by_filters_ ? CeilDivide(output_blocks_, kPartBlocks) : 1;
  part_blocks_ = CeilDivide(output_blocks_, k_parts_);
  du_count_ = by_filters_ && block_tiles_ >= tiles_ ? std::min(threads_, Items()) : Items();
  bias_at_ = scratch_.Add<double>(outputs_);
  v_at_ = scratch_.Add<Operand>(slices_ * SliceOfV());
  z_at_ = scratch_.Add<Operand>(slices_ * SliceOfZ());
  du_at_ = scratch_.Add<float>(du_count_ * SizeOfDu());
}

template <typename Operand>
int64_t WinogradWeights<Operand>::SliceOfV() const {
  return channel_blocks_ * block_tiles_ * lanes_ + kLine<Operand>;
}
template <typename Operand>
int64_t WinogradWeights<Operand>::SliceOfZ() const {
  return output_blocks_ * block_tiles_ * lanes_ + kLine<Operand>;
}
template <typename Operand>
int64_t WinogradWeights<Operand>::SliceOfDu() const {
  return lanes_ * part_blocks_ * lanes_ + kLineFloats;
}

template <typename Operand>
typename WinogradWeights<Operand>::Buffers WinogradWeights<Operand>::Split(
    std::byte* scratch) const {
  return {.bias = ArrayAt<double>(scratch, bias_at_),
          .v = ArrayAt<Operand>(scratch, v_at_),
          .z = ArrayAt<Operand>(scratch, z_at_),
          .du = ArrayAt<float>(scratch, du_at_)};
}

template <typename Operand>
void WinogradWeights<Operand>::Run(const float* src, const ChannelAffine& affine,
                                   const float* diff_dst, float* diff_weight, float* diff_bias,
                                   std::byte* scratch) const {
  const Buffers buffers = Split(scratch);
  std::fill_n(buffers.bias, outputs_, 0.0);
  for (int64_t first = 0; first < tiles_; first += block_tiles_) {
    const int64_t last = std::min(tiles_, first + block_tiles_), tiles = last - first;
    Transform(src, affine, diff_dst, first, last, buffers);
    if (by_filters_) {
      RunByFilters(buffers, tiles, first == 0, last == tiles_, diff_weight);
    } else {
      RunBySlices(buffers, tiles, /*accumulate=*/first > 0);
    }
  }
  if (!by_filters_) {
    ParallelFor(channel_blocks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        TransformBack(buffers.du + c * SizeOfDu(), c, 0, output_blocks_, diff_weight);
      }
    });
  }
  if (diff_bias == nullptr) return;
  for (int64_t k = 0; k < outputs_; ++k) diff_bias[k] = static_cast<float>(buffers.bias[k]);
}

template <typename Operand>
void WinogradWeights<Operand>::Transform(const float* src, const ChannelAffine& affine,
                                         const float* diff_dst, int64_t first, int64_t last,
                                         const Buffers& buffers) const {
  const int64_t offset = block_tiles_ * lanes_;
  ParallelFor(channel_blocks_ + output_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i < channel_blocks_) {
        WinogradOperands<Operand>::PairedInput(tile_, input_, WinogradPlane(input_, src, i, lanes_),
                                               affine.From(i * lanes_), first, last,
                                               buffers.v + i * offset, SliceOfV());
        continue;
      }
      const int64_t k = i - channel_blocks_;
      WinogradOperands<Operand>::Gradient(
          tile_, gradient_, WinogradPlane(gradient_, diff_dst, k, lanes_), first, last,
          buffers.z + k * offset, SliceOfZ(), buffers.bias + k * lanes_);
    }
  });
}

template <typename Operand>
void WinogradWeights<Operand>::RunBySlices(const Buffers& buffers, int64_t tiles,
                                           bool accumulate) const {
  ParallelFor(slices_ * channel_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t slice = i / channel_blocks_, c = i % channel_blocks_;
      Multiply(buffers, slice, c, 0, output_blocks_, tiles, accumulate,
               buffers.du + c * SizeOfDu());
    }
  });
}

template <typename Operand>
void WinogradWeights<Operand>::RunByFilters(const Buffers& buffers, int64_t tiles, bool first,
                                            bool last, float* diff_weight) const {
  ParallelFor(threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = Items() * begin / threads_; item < Items() * end / threads_; ++item) {
      const int64_t c = item / k_parts_, k = item % k_parts_ * part_blocks_;
      const int64_t k_end = std::min(output_blocks_, k + part_blocks_);
      float* du = buffers.du + (du_count_ == Items() ? item : begin) * SizeOfDu();
      for (int64_t slice = 0; slice < slices_; ++slice) {
        Multiply(buffers, slice, c, k, k_end, tiles, /*accumulate=*/!first, du);
      }
      if (last) TransformBack(du, c, k, k_end, diff_weight);
    }
  });
}

template <typename Operand>
void WinogradWeights<Operand>::Multiply(const Buffers& buffers, int64_t slice, int64_t c, int64_t k,
                                        int64_t k_end, int64_t tiles, bool accumulate,
                                        float* du) const {
  const int64_t offset = block_tiles_ * lanes_;
  WinogradOperands<Operand>::MultiplyGradient({.v = buffers.v + slice * SliceOfV() + c * offset,
                                               .z = buffers.z + slice * SliceOfZ() + k * offset,
                                               .z_block_stride = offset,
                                               .k_blocks = k_end - k,
                                               .tiles = tiles,
                                               .du = du + slice * SliceOfDu(),
                                               .du_stride = part_blocks_ * lanes_,
                                               .accumulate = accumulate});
}

template <typename Operand>
void WinogradWeights<Operand>::TransformBack(const float* du, int64_t c, int64_t k, int64_t k_end,
                                             float* diff_weight) const {
  const WinogradFilters filters = {.lane_stride = channels_ * kFilterTaps,
                                   .channel_stride = kFilterTaps,
                                   .channels = lanes_,
                                   .flipped = false};
  for (int64_t block = k; block < k_end; ++block) {
    RT_KERNEL(WinogradFilterGradient, tile_, filters, du + (block - k) * lanes_,
              part_blocks_ * lanes_, SliceOfDu(),
              diff_weight + (block * channels_ + c) * lanes_ * kFilterTaps);
  }
}

template class WinogradWeights<float>;
template class WinogradWeights<Bfloat16>;

}  // namespace ringtail
