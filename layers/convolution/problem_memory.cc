#include "layers/convolution/problem_memory.h"

#include <algorithm>
#include <limits>

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;

size_t WeightBytes(const ConvolutionProblem& p) {
  return p.dst.C * (p.src.C / p.groups) * p.window.KH * p.window.KW * sizeof(float);
}

// Whether src and diff_src are there at the same time, or two diff_src to be added.
bool HasMoreSrc(const ConvolutionProblem& p, Direction direction) {
  return direction == Direction::kBackward ||
         (direction == Direction::kBackwardData && (p.diff_src_is_sum || p.src_is_affine));
}

size_t MostChannels(const ConvolutionProblem& p) {
  return std::max(p.src.channel_blocks() * p.src.block, p.dst.channel_blocks() * p.dst.block);
}

}  // namespace

ProblemMemory::ProblemMemory(const ConvolutionProblem& p, Direction direction, size_t scratch_bytes)
    : problem_(p),
      src_(p.src.bytes()),
      dst_(p.dst.bytes()),
      more_src_(HasMoreSrc(p, direction) ? p.src.bytes() : 0),
      weight_(WeightBytes(p)),
      diff_weight_(direction == Direction::kBackward ? WeightBytes(p) : 0),
      bias_(static_cast<size_t>(p.dst.C) * sizeof(float)),
      scratch_(scratch_bytes),
      zeros_(MostChannels(p), 0.0F),
      ones_(MostChannels(p), 1.0F) {
  for (AlignedBuffer* buffer : {&src_, &dst_, &weight_}) {
    std::ranges::fill(buffer->floats(), 0.5F);
  }
}

size_t ProblemMemory::Bytes(const ConvolutionProblem& p, Direction direction,
                            size_t scratch_bytes) {
  const int more = HasMoreSrc(p, direction) ? 1 : 0;
  return p.dst.bytes() + (1 + more) * (p.src.bytes() + WeightBytes(p)) + scratch_bytes;
}

ChannelAffine ProblemMemory::affine() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return {zeros_.data(), ones_.data(), zeros_.data(), -kInfinity, kInfinity};
}

ConvolutionTensors ProblemMemory::Tensors(Direction direction,
                                          const ConvolutionAlgorithm& candidate) {
  float* const weight = weight_.floats().data();
  float* const bias = problem_.bias ? bias_.floats().data() : nullptr;
  const bool maps_src = problem_.src_is_affine && candidate.takes_affine();
  ConvolutionTensors t{.scratch = scratch_.data()};
  if (direction != Direction::kBackwardData && maps_src) t.src_affine = affine();
  if (WritesDiffSrc(direction)) {
    t.add_to_diff_src = problem_.diff_src_is_sum && candidate.adds_to_diff_src();
  }
  switch (direction) {
    case Direction::kForward:
      t.src = src(), t.weight = weight, t.bias = bias, t.dst = dst();
      if (problem_.dst_is_normalized) t.dst_moments = Moments(candidate.moments_pixels());
      break;
    case Direction::kBackwardData:
      t.diff_dst = dst(), t.weight = weight, t.diff_src = src();
      break;
    case Direction::kBackwardWeights:
      t.src = src(), t.diff_dst = dst(), t.diff_weight = weight, t.diff_bias = bias;
      break;
    case Direction::kBackward:
      t.src = src(), t.weight = weight, t.diff_dst = dst();
      t.diff_src = more_src(), t.diff_weight = diff_weight_.floats().data();
      t.diff_bias = bias;
      if (problem_.dst_is_normalized && candidate.takes_gradient_map()) {
        t.diff_dst_map = {dst(), affine(), zeros_.data(), zeros_.data()};
      }
      break;
  }
  if (WritesDiffSrc(direction) && problem_.src_is_affine && candidate.gradient_sums_pixels() > 0) {
    t.src = src(), t.diff_src = more_src(), t.src_affine = affine();
    t.diff_src_sums = Sums(candidate.gradient_sums_pixels());
  }
  return t;
}

BlobMoments ProblemMemory::Moments(int64_t part_pixels) {
  if (part_pixels == 0) return {};
  BlobMoments moments{{.part_pixels = part_pixels}};
  moments.mean = TwoArrays(moments.elements(problem_.dst));
  moments.m2 = moments.mean + moments.elements(problem_.dst);
  return moments;
}

BlobGradientSums ProblemMemory::Sums(int64_t part_pixels) {
  BlobGradientSums sums{{.part_pixels = part_pixels}};
  sums.g = TwoArrays(sums.elements(problem_.src));
  sums.gx = sums.g + sums.elements(problem_.src);
  return sums;
}

double* ProblemMemory::TwoArrays(int64_t elements) {
  part_sums_.resize(2 * elements);
  return part_sums_.data();
}

}  // namespace ringtail
