#include "layers/convolution/neighbour_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "layers/element_types/blob_elements.h"
#include "layers/element_types/widen.h"
#include "layers/kernels/batch_norm.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

constexpr int kRounds = 4;
constexpr int64_t kLargestBlock = 16;

template <typename Function>
double LeastSeconds(const Function& fn) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    fn();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

// The least time of fn(offset) for the offsets of all channel blocks of the blob.
template <typename Function>
double LeastSecondsOfBlocks(const BlobDesc& desc, const Function& fn) {
  const int64_t block_elements = desc.plane() * desc.block;
  return LeastSeconds(
      [&] { ForEachChannelBlock(desc, [&](int64_t i) { fn(i * block_elements); }); });
}

}  // namespace

NeighbourCosts::NeighbourCosts(const ConvolutionProblem& p, ConvolutionDirection direction,
                               ProblemMemory* memory) {
  ForElementOf(p.src.type,
               [&](auto element) { MeasureSrc<decltype(element)>(p, direction, memory); });
  ForElementOf(p.dst.type,
               [&](auto element) { MeasureDst<decltype(element)>(p, direction, memory); });
  if (p.diff_src_is_sum && WritesDiffSrc(direction)) {
    add_diff_src_ = LeastSeconds([&] { AddBlob(p.src, memory->src(), memory->more_src()); });
  }
}

template <typename Element>
void NeighbourCosts::MeasureSrc(const ConvolutionProblem& p, ConvolutionDirection direction,
                                ProblemMemory* memory) {
  const ChannelAffine affine = memory->affine();
  auto* src = ElementsOf<Element>(memory->src());
  const int64_t plane = p.src.plane(), block = p.src.block;
  if (p.src_is_affine && direction != ConvolutionDirection::kBackwardData) {
    write_src_ = LeastSecondsOfBlocks(p.src, [&](int64_t at) {
      RT_KERNEL(BatchNormApply<Element>, src + at, plane, block, affine, src + at);
    });
  }
  if (p.src_is_affine && WritesDiffSrc(direction)) {
    const auto* diff_src = ElementsOf<Element>(memory->more_src());
    take_sums_ = LeastSecondsOfBlocks(p.src, [&](int64_t at) {
      std::array<double, kLargestBlock> g, gx;
      RT_KERNEL(BatchNormGradientSums<Element>, src + at, diff_src + at, plane, block, affine,
                g.data(), gx.data());
    });
  }
}

template <typename Element>
void NeighbourCosts::MeasureDst(const ConvolutionProblem& p, ConvolutionDirection direction,
                                ProblemMemory* memory) {
  if (!p.dst_is_normalized) return;
  const ChannelAffine affine = memory->affine();
  auto* dst = ElementsOf<Element>(memory->dst());
  const int64_t plane = p.dst.plane(), block = p.dst.block;
  if (direction == ConvolutionDirection::kForward) {
    take_moments_ = LeastSecondsOfBlocks(p.dst, [&](int64_t at) {
      std::array<double, kLargestBlock> mean, m2;
      RT_KERNEL(BatchNormMoments<Element>, dst + at, plane, block, mean.data(), m2.data());
    });
  }
  if (direction == ConvolutionDirection::kBackward) {
    const float* zeros = affine.bias;
    write_diff_dst_ = LeastSecondsOfBlocks(p.dst, [&](int64_t at) {
      RT_KERNEL(BatchNormGradient<Element>, dst + at, dst + at, plane, block, affine, zeros, zeros,
                dst + at);
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
