#include "layers/convolution/winograd/winograd_strided_weights.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

using Problem = WinogradStridedProblem;

constexpr int64_t kFilterTaps = 9;
constexpr int64_t kProducts = 81;
constexpr int64_t kLineFloats = 16;          // see winograd_strided_data.cc
constexpr int64_t kBytesOfVAndZ = 20 << 20;  // a share of the third-level cache
constexpr int64_t kMinBlockTiles = 32;       // shorter sums would not pay for reading dU again
constexpr int64_t kPartBlocks = 9;  // of k: with all products, what a second-level cache holds

}  // namespace

WinogradStridedWeights::WinogradStridedWeights(const Problem& problem, int threads)
    : lanes_(RT_KERNEL(WinogradLanes)()),
      threads_(threads),
      channels_(problem.src.C),
      channel_blocks_(problem.src.channel_blocks()),
      outputs_(problem.dst.C),
      output_blocks_(problem.dst.channel_blocks()),
      input_(problem.SrcGrid()),
      gradient_(problem.DstGrid()),
      tiles_(problem.dst.N * input_.tiles_y * input_.tiles_x) {
  RT_CHECK(problem.IsSupported(), "not a strided convolution for Winograd");
  const int64_t bytes_per_tile =
      (kProducts * channels_ + Problem::kSlices * outputs_) * static_cast<int64_t>(sizeof(float));
  const int64_t fit = std::max(kBytesOfVAndZ / bytes_per_tile, kMinBlockTiles);
  block_tiles_ = CeilDivide(tiles_, CeilDivide(tiles_, fit));
  k_parts_ = CeilDivide(output_blocks_, kPartBlocks);
  part_blocks_ = CeilDivide(output_blocks_, k_parts_);
  du_count_ = block_tiles_ == tiles_ ? std::min(threads_, Items()) : Items();
  bias_at_ = scratch_.Add<double>(outputs_);
  v_at_ = scratch_.Add<float>(Problem::kSlices * SliceOfV());
  z_at_ = scratch_.Add<float>(Problem::kSlices * SliceOfZ());
  du_at_ = scratch_.Add<float>(du_count_ * SizeOfDu());
}

int64_t WinogradStridedWeights::SliceOfV() const {
  return Problem::kPhases * PhaseOfV() + kLineFloats;
}
int64_t WinogradStridedWeights::SliceOfZ() const {
  return output_blocks_ * block_tiles_ * lanes_ + kLineFloats;
}
int64_t WinogradStridedWeights::SliceOfDu() const {
  return Problem::kPhases * PhaseOfDu() + kLineFloats;
}

WinogradStridedWeights::Buffers WinogradStridedWeights::Split(std::byte* scratch) const {
  return {.bias = ArrayAt<double>(scratch, bias_at_),
          .v = ArrayAt<float>(scratch, v_at_),
          .z = ArrayAt<float>(scratch, z_at_),
          .du = ArrayAt<float>(scratch, du_at_)};
}

void WinogradStridedWeights::Run(const float* src, const float* diff_dst, float* diff_weight,
                                 float* diff_bias, std::byte* scratch) const {
  const Buffers buffers = Split(scratch);
  std::fill_n(buffers.bias, outputs_, 0.0);
  for (int64_t first = 0; first < tiles_; first += block_tiles_) {
    const int64_t last = std::min(tiles_, first + block_tiles_);
    Transform(src, diff_dst, first, last, buffers);
    MultiplyAll(buffers, last - first, first == 0, last == tiles_, diff_weight);
  }
  if (diff_bias == nullptr) return;
  for (int64_t k = 0; k < outputs_; ++k) diff_bias[k] = static_cast<float>(buffers.bias[k]);
}

void WinogradStridedWeights::Transform(const float* src, const float* diff_dst, int64_t first,
                                       int64_t last, const Buffers& buffers) const {
  const int64_t offset = block_tiles_ * lanes_;
  // One after the other: a block of src is more work than one of diff_dst.
  ParallelFor(channel_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      RT_KERNEL(WinogradStridedInput, input_, WinogradPlane(input_, src, c, lanes_), first, last,
                buffers.v + c * offset, SliceOfV(), PhaseOfV());
    }
  });
  ParallelFor(output_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      RT_KERNEL(WinogradStridedGradient, gradient_, WinogradPlane(gradient_, diff_dst, k, lanes_),
                first, last, buffers.z + k * offset, SliceOfZ(), buffers.bias + k * lanes_);
    }
  });
}

void WinogradStridedWeights::MultiplyAll(const Buffers& buffers, int64_t tiles, bool first,
                                         bool last, float* diff_weight) const {
  ParallelFor(threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = Items() * begin / threads_; item < Items() * end / threads_; ++item) {
      const int64_t c = item / k_parts_, k = item % k_parts_ * part_blocks_;
      const int64_t k_end = std::min(output_blocks_, k + part_blocks_);
      float* du = buffers.du + (du_count_ == Items() ? item : begin) * SizeOfDu();
      Multiply(buffers, c, k, k_end, tiles, /*accumulate=*/!first, du);
      if (last) TransformBack(du, c, k, k_end, diff_weight);
    }
  });
}

void WinogradStridedWeights::Multiply(const Buffers& buffers, int64_t c, int64_t k, int64_t k_end,
                                      int64_t tiles, bool accumulate, float* du) const {
  const int64_t offset = block_tiles_ * lanes_;
  for (int64_t slice = 0; slice < Problem::kSlices; ++slice) {
    const auto [first, count] = Problem::PhasesOf(slice);
    for (int64_t phase = first; phase < first + count; ++phase) {
      RT_KERNEL(WinogradMultiplyGradient,
                {.v = buffers.v + slice * SliceOfV() + phase * PhaseOfV() + c * offset,
                 .z = buffers.z + slice * SliceOfZ() + k * offset,
                 .z_block_stride = offset,
                 .k_blocks = k_end - k,
                 .tiles = tiles,
                 .du = du + slice * SliceOfDu() + phase * PhaseOfDu(),
                 .du_stride = part_blocks_ * lanes_,
                 .accumulate = accumulate});
    }
  }
}

void WinogradStridedWeights::TransformBack(const float* du, int64_t c, int64_t k, int64_t k_end,
                                           float* diff_weight) const {
  const WinogradFilters filters = {.lane_stride = channels_ * kFilterTaps,
                                   .channel_stride = kFilterTaps,
                                   .channels = lanes_,
                                   .flipped = false};
  for (int64_t block = k; block < k_end; ++block) {
    RT_KERNEL(WinogradStridedFilterGradient, filters, du + (block - k) * lanes_,
              part_blocks_ * lanes_, SliceOfDu(), PhaseOfDu(),
              diff_weight + (block * channels_ + c) * lanes_ * kFilterTaps);
  }
}

}  // namespace ringtail
