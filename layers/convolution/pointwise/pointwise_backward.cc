#include "layers/convolution/pointwise/pointwise_backward.h"

#include <algorithm>
#include <limits>

#include "core/parallel_for.h"
#include "layers/convolution/work_division.h"

namespace ringtail {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
// Shares of a core's second-level cache: sums and packed weights; the runs of src and diff_dst,
// twice.
constexpr int64_t kWeightBytes = 256 << 10;
constexpr int64_t kRunBytes = 40 << 10;
constexpr int64_t kMaxRunPixels = 256, kMinRunPixels = 14;
constexpr int64_t kAllChannels = std::numeric_limits<int32_t>::max();

int64_t Channels(const BlobDesc& desc) { return desc.channel_blocks() * desc.block; }

int64_t RunPixels(const ConvolutionProblem& p) {
  const int64_t pixels = kRunBytes / ((Channels(p.src) + Channels(p.dst)) * kFloatBytes);
  return std::clamp(pixels, kMinRunPixels, kMaxRunPixels);
}

}  // namespace

bool PointwiseBackward::Fits(const ConvolutionProblem& p) {
  return !p.bias && Channels(p.src) * Channels(p.dst) * kFloatBytes <= kWeightBytes;
}

PointwiseBackward::PointwiseBackward(const ConvolutionProblem& problem)
    : src_(problem.src),
      dst_(problem.dst),
      data_(problem, ConvolutionDirection::kBackwardData),
      sums_(problem, kAllChannels, kAllChannels),
      pieces_(dst_.N, dst_.plane(), RunPixels(problem), RT_KERNEL(PointwisePixelGroup)()),
      threads_(NumComputeThreads()),
      src_floats_(problem.src_is_affine ? Channels(src_) * pieces_.run_pixels() : 0),
      diff_dst_floats_(problem.dst_is_normalized ? Channels(dst_) * pieces_.run_pixels() : 0),
      packed_at_(scratch_.AddBytes(data_.packed_bytes())),
      sums_at_(scratch_.Add<float>(sums_.floats())),
      buffers_at_(scratch_.Add<float>(threads_ * (src_floats_ + diff_dst_floats_))) {}

void PointwiseBackward::RunSlot(const ConvolutionTensors& t, const float* packed, int64_t slot,
                                const Buffers& buffers, float* sums) const {
  const int64_t pieces = pieces_.count(), slots = sums_.slots();
  bool first = true;
  pieces_.ForEachRun(
      pieces * slot / slots, pieces * (slot + 1) / slots, [&](const auto& run, const auto& next) {
        const PixelBlocks dst = sums_.DstBlocks(run, 0), next_dst = sums_.DstBlocks(next, 0);
        const PixelView diff_dst = View(dst, t.diff_dst, t.diff_dst_map, buffers.diff_dst);
        const PixelView src = View(sums_.SrcBlocks(run, 0), t.src, t.src_affine, buffers.src);
        // Each product fetches a part of the next run.
        const bool maps = !t.diff_dst_map.is_identity();
        data_.MultiplyRun(packed, run, diff_dst, View(next_dst, t.diff_dst), t);
        sums_.Add({.run = run,
                   .src = src,
                   .diff_dst = diff_dst,
                   .fetch_src = View(sums_.SrcBlocks(next, 0), t.src),
                   .fetch_dst = maps ? View(next_dst, t.diff_dst_map.src) : PixelView{}},
                  slot, /*tile=*/0, first, sums);
        first = false;
      });
}

void PointwiseBackward::Run(const ConvolutionTensors& tensors) {
  float* packed = ArrayAt<float>(tensors.scratch, packed_at_);
  float* sums = ArrayAt<float>(tensors.scratch, sums_at_);
  float* buffers = ArrayAt<float>(tensors.scratch, buffers_at_);
  data_.PackWeights(tensors.weight, packed);
  ForEachThread(threads_, [&](int64_t t) {
    float* src = buffers + t * (src_floats_ + diff_dst_floats_);
    for (int64_t i = sums_.slots() * t / threads_; i < sums_.slots() * (t + 1) / threads_; ++i) {
      RunSlot(tensors, packed, i, {src, src + src_floats_}, sums);
    }
  });
  sums_.Write(/*tile=*/0, sums, tensors.diff_weight);
}

}  // namespace ringtail
