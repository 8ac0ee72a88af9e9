#include "layers/convolution/neighbour_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "core/kernels/add.h"
#include "layers/kernels/batch_norm.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

constexpr int kRounds = 4;
constexpr int64_t kLargestBlock = 16;

// The least time of fn(offset) for the offsets of all channel blocks of the blob.
template <typename Function>
double LeastSeconds(const BlobDesc& desc, const Function& fn) {
  using Clock = std::chrono::steady_clock;
  const int64_t block_floats = desc.plane() * desc.block;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    ForEachChannelBlock(desc, [&](int64_t i) { fn(i * block_floats); });
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

}  // namespace

NeighbourCosts::NeighbourCosts(const ConvolutionProblem& p, ConvolutionDirection direction,
                               ProblemMemory* memory) {
  using Direction = ConvolutionDirection;
  const ChannelAffine affine = memory->affine();
  float *src = memory->src(), *dst = memory->dst(), *diff_src = memory->more_src();
  const int64_t src_plane = p.src.plane(), dst_plane = p.dst.plane();
  if (p.src_is_affine && direction != Direction::kBackwardData) {
    write_src_ = LeastSeconds(p.src, [&](int64_t at) {
      RT_KERNEL(BatchNormApply, src + at, src_plane, p.src.block, affine, src + at);
    });
  }
  if (p.dst_is_normalized && direction == Direction::kForward) {
    take_moments_ = LeastSeconds(p.dst, [&](int64_t at) {
      std::array<double, kLargestBlock> mean, m2;
      RT_KERNEL(BatchNormMoments, dst + at, dst_plane, p.dst.block, mean.data(), m2.data());
    });
  }
  if (p.dst_is_normalized && direction == Direction::kBackward) {
    const float* zeros = affine.bias;
    write_diff_dst_ = LeastSeconds(p.dst, [&](int64_t at) {
      RT_KERNEL(BatchNormGradient, dst + at, dst + at, dst_plane, p.dst.block, affine, zeros, zeros,
                dst + at);
    });
  }
  if (p.src_is_affine && WritesDiffSrc(direction)) {
    take_sums_ = LeastSeconds(p.src, [&](int64_t at) {
      std::array<double, kLargestBlock> g, gx;
      RT_KERNEL(BatchNormGradientSums, src + at, diff_src + at, src_plane, p.src.block, affine,
                g.data(), gx.data());
    });
  }
  if (p.diff_src_is_sum && WritesDiffSrc(direction)) {
    add_diff_src_ = LeastSeconds(p.src, [&](int64_t at) {
      RT_KERNEL(AddFloats, src + at, src_plane * p.src.block, diff_src + at);
    });
  }
}

double NeighbourCosts::SecondsLeftBy(const ConvolutionAlgorithm& candidate) const {
  return (candidate.takes_affine() ? 0 : write_src_) +
         (candidate.moments_pixels() > 0 ? 0 : take_moments_) +
         (candidate.takes_gradient_map() ? 0 : write_diff_dst_) +
         (candidate.gradient_sums_pixels() > 0 ? 0 : take_sums_) +
         (candidate.adds_to_diff_src() ? 0 : add_diff_src_);
}

}  // namespace ringtail
