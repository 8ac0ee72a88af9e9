#include "layers/convolution/depthwise_convolution.h"

#include <algorithm>
#include <string>

#include "core/parallel_for.h"
#include "layers/kernels/depthwise.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

bool IsSupported(const ConvolutionProblem& p) {
  const Window& w = p.window;
  const int64_t lanes = RT_KERNEL(DepthwiseLanes)();
  return p.depthwise() && p.src.block == lanes && p.dst.block == lanes &&
         (w.KH == 3 || w.KH == 5) && w.KW == w.KH && (w.SH == 1 || w.SH == 2) && w.SW == w.SH &&
         w.DH == 1 && w.DW == 1;
}

// What the three directions have in common.
class Depthwise : public ConvolutionAlgorithm {
 public:
  explicit Depthwise(const ConvolutionProblem& p)
      : problem_(p),
        plane_{.kernel = static_cast<int>(p.window.KH),
               .stride = static_cast<int>(p.window.SH),
               .H = p.src.H,
               .W = p.src.W,
               .OH = p.dst.H,
               .OW = p.dst.W,
               .pad_top = p.window.PT,
               .pad_left = p.window.PL},
        lanes_(p.src.block),
        blocks_(p.src.channel_blocks()),
        taps_(p.window.KH * p.window.KW),
        ring_floats_(p.window.KH * p.src.W * lanes_),
        src_plane_(p.src.plane() * lanes_),
        dst_plane_(p.dst.plane() * lanes_) {}

  std::string name() const override { return std::string("depthwise:") + KernelIsaName(isa_); }

 protected:
  int64_t ChannelsOf(int64_t block) const {
    return std::min(lanes_, problem_.src.C - block * lanes_);
  }
  size_t PackedBytes() const { return blocks_ * taps_ * lanes_ * sizeof(float); }
  size_t RingBytes() const { return threads_ * ring_floats_ * sizeof(float); }

  // weight (C, K, K) -> (channel block, K K, lane), zero in padding channels.
  void PackWeights(const float* weight, float* packed) const {
    ParallelFor(blocks_, Grain(taps_ * lanes_), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        float* to = packed + block * taps_ * lanes_;
        std::fill_n(to, taps_ * lanes_, 0.0f);
        for (int64_t c = 0; c < ChannelsOf(block); ++c) {
          const float* from = weight + (block * lanes_ + c) * taps_;
          for (int64_t tap = 0; tap < taps_; ++tap) to[tap * lanes_ + c] = from[tap];
        }
      }
    });
  }

  // Calls fn(begin, end, ring) for ranges of `count` items of `floats` floats, at most one per
  // thread, each with a ring of its own. Without `rings` ring is null.
  template <typename Function>
  void ForEachRange(int64_t count, int64_t floats, float* rings, const Function& fn) const {
    const int64_t grain = Grain(floats), worth = (count + grain - 1) / grain;
    const int64_t ranges = std::min(threads_, worth);
    ParallelFor(ranges, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        fn(count * i / ranges, count * (i + 1) / ranges,
           rings != nullptr ? rings + i * ring_floats_ : nullptr);
      }
    });
  }

  // Calls fn(i, block, ring) for i = sample * blocks_ + block: planes i of src and dst.
  template <typename Function>
  void ForEachPlane(float* rings, const Function& fn) const {
    ForEachRange(problem_.src.N * blocks_, std::max(src_plane_, dst_plane_), rings,
                 [&](int64_t begin, int64_t end, float* ring) {
                   for (int64_t i = begin; i < end; ++i) fn(i, i % blocks_, ring);
                 });
  }

  // Plane i of src.
  DepthwiseSrc Src(const ConvolutionTensors& t, int64_t i, float* ring) const {
    return {t.src + i * src_plane_, t.src_affine.From(i % blocks_ * lanes_), ring};
  }

  const ConvolutionProblem problem_;
  const DepthwisePlane plane_;
  const KernelIsa isa_ = SelectedKernelIsa();
  const int64_t threads_ = NumComputeThreads();
  const int64_t lanes_, blocks_, taps_;
  const int64_t ring_floats_, src_plane_, dst_plane_;
};

class DepthwiseForwardAlgorithm final : public Depthwise {
 public:
  using Depthwise::Depthwise;

  bool takes_affine() const override { return true; }
  size_t scratch_bytes() const override {
    return PackedBytes() + blocks_ * lanes_ * sizeof(float) + RingBytes();
  }

  void Run(const ConvolutionTensors& t) override {
    auto* weight = reinterpret_cast<float*>(t.scratch);
    float* bias = weight + blocks_ * taps_ * lanes_;
    PackWeights(t.weight, weight);
    std::fill_n(bias, blocks_ * lanes_, 0.0f);
    if (t.bias != nullptr) std::copy_n(t.bias, problem_.src.C, bias);
    const float low = LowerBound(problem_.activation), high = UpperBound(problem_.activation);
    const auto kernel = RT_KERNEL(DepthwiseForward);
    ForEachPlane(bias + blocks_ * lanes_, [&](int64_t i, int64_t block, float* ring) {
      const DepthwiseEpilogue epilogue = {bias + block * lanes_, low, high};
      kernel(plane_, Src(t, i, ring), weight + block * taps_ * lanes_, epilogue,
             t.dst + i * dst_plane_);
    });
  }
};

class DepthwiseBackwardDataAlgorithm final : public Depthwise {
 public:
  using Depthwise::Depthwise;

  size_t scratch_bytes() const override { return PackedBytes(); }

  void Run(const ConvolutionTensors& t) override {
    auto* weight = reinterpret_cast<float*>(t.scratch);
    PackWeights(t.weight, weight);
    const auto kernel = RT_KERNEL(DepthwiseBackwardData);
    ForEachPlane(/*rings=*/nullptr, [&](int64_t i, int64_t block, float*) {
      kernel(plane_, t.diff_dst + i * dst_plane_, weight + block * taps_ * lanes_,
             t.diff_src + i * src_plane_);
    });
  }
};

class DepthwiseBackwardWeightsAlgorithm final : public Depthwise {
 public:
  using Depthwise::Depthwise;

  bool takes_affine() const override { return true; }
  size_t scratch_bytes() const override {
    return groups_ * blocks_ * sum_floats_ * sizeof(float) + RingBytes();
  }

  void Run(const ConvolutionTensors& t) override {
    auto* sums = reinterpret_cast<float*>(t.scratch);
    const int64_t items = groups_ * blocks_, floats = std::max(src_plane_, dst_plane_) * kGroup;
    ForEachRange(items, floats, sums + items * sum_floats_,
                 [&](int64_t begin, int64_t end, float* ring) {
                   while (begin < end) {  // one group at a time
                     const int64_t group = begin / blocks_, first = begin % blocks_;
                     const int64_t count = std::min(end - begin, blocks_ - first);
                     SumGroup(t, group, first, first + count, ring, sums + begin * sum_floats_);
                     begin += count;
                   }
                 });
    ParallelFor(blocks_, Grain(groups_ * sum_floats_), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        WriteSum(t, block, sums + block * sum_floats_);
      }
    });
  }

 private:
  // Samples that share a sum: fewer sums to write and add up, but enough units of work left.
  static constexpr int64_t kGroup = 4;

  // The sums of blocks [first, last) over one group of samples.
  void SumGroup(const ConvolutionTensors& t, int64_t group, int64_t first, int64_t last,
                float* ring, float* sums) const {
    const auto kernel = RT_KERNEL(DepthwiseBackwardWeights);
    std::fill_n(sums, (last - first) * sum_floats_, 0.0f);
    const int64_t end = std::min((group + 1) * kGroup, problem_.src.N);
    for (int64_t n = group * kGroup; n < end; ++n) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t i = n * blocks_ + block;
        float* sum = sums + (block - first) * sum_floats_;
        kernel(plane_, Src(t, i, ring), t.diff_dst + i * dst_plane_, sum,
               t.diff_bias != nullptr ? sum + taps_ * lanes_ : nullptr);
      }
    }
  }

  // Adds the sums of all groups to those of the first, and writes them out.
  void WriteSum(const ConvolutionTensors& t, int64_t block, float* total) const {
    for (int64_t group = 1; group < groups_; ++group) {
      const float* sum = total + group * blocks_ * sum_floats_;
      for (int64_t i = 0; i < sum_floats_; ++i) total[i] += sum[i];
    }
    for (int64_t c = 0; c < ChannelsOf(block); ++c) {
      float* to = t.diff_weight + (block * lanes_ + c) * taps_;
      for (int64_t tap = 0; tap < taps_; ++tap) to[tap] = total[tap * lanes_ + c];
      if (t.diff_bias != nullptr) t.diff_bias[block * lanes_ + c] = total[taps_ * lanes_ + c];
    }
  }

  const int64_t groups_ = (problem_.src.N + kGroup - 1) / kGroup;
  const int64_t sum_floats_ = (taps_ + 1) * lanes_;  // per block; the last are the bias'
};

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateDepthwise(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction) {
  if (!IsSupported(problem)) return nullptr;
  switch (direction) {
    case ConvolutionDirection::kForward:
      return std::make_unique<DepthwiseForwardAlgorithm>(problem);
    case ConvolutionDirection::kBackwardData:
      return std::make_unique<DepthwiseBackwardDataAlgorithm>(problem);
    case ConvolutionDirection::kBackwardWeights:
      return std::make_unique<DepthwiseBackwardWeightsAlgorithm>(problem);
    case ConvolutionDirection::kBackward:
      break;
  }
  return nullptr;
}

}  // namespace ringtail
