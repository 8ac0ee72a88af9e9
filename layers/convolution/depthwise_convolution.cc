#include "layers/convolution/depthwise_convolution.h"

#include <algorithm>
#include <string>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/convolution/streaming.h"
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

// The common part of all directions.
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
        src_row_(p.src.W * lanes_),
        dst_row_(p.dst.W * lanes_),
        src_plane_(p.src.plane() * lanes_),
        dst_plane_(p.dst.plane() * lanes_) {}

  std::string name() const override { return std::string("depthwise:") + KernelIsaName(isa_); }
  bool takes_affine() const override { return true; }

 protected:
  int64_t ChannelsOf(int64_t block) const {
    return std::min(lanes_, problem_.src.C - block * lanes_);
  }
  int64_t PackedFloats() const { return blocks_ * taps_ * lanes_; }

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

  // Calls fn(begin, end, rows) for ranges of `count` items of `floats` floats, at most one per
  // thread, each with `row_floats` of `rows` of its own.
  template <typename Function>
  void ForEachRange(int64_t count, int64_t floats, float* rows, int64_t row_floats,
                    const Function& fn) const {
    const int64_t grain = Grain(floats), worth = CeilDivide(count, grain);
    const int64_t ranges = std::min(threads_, worth);
    ParallelFor(ranges, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        fn(count * i / ranges, count * (i + 1) / ranges, rows + i * row_floats);
      }
    });
  }

  // Plane i = sample * blocks_ + block of src.
  DepthwiseSrc Src(const ConvolutionTensors& t, int64_t i, float* ring) const {
    return {t.src + i * src_plane_, t.src_affine.From(i % blocks_ * lanes_), ring};
  }

  const ConvolutionProblem problem_;
  const DepthwisePlane plane_;
  const KernelIsa isa_ = SelectedKernelIsa();
  const int64_t threads_ = NumComputeThreads();
  const int64_t lanes_, blocks_, taps_;
  const int64_t src_row_, dst_row_, src_plane_, dst_plane_;  // floats
};

class DepthwiseForwardAlgorithm final : public Depthwise {
 public:
  using Depthwise::Depthwise;

  size_t scratch_bytes() const override {
    return (PackedFloats() + blocks_ * lanes_ + threads_ * RowFloats()) * sizeof(float);
  }
  int64_t moments_pixels() const override { return problem_.dst.plane(); }

  void Run(const ConvolutionTensors& t) override {
    auto* weight = reinterpret_cast<float*>(t.scratch);
    float* bias = weight + PackedFloats();
    PackWeights(t.weight, weight);
    std::fill_n(bias, blocks_ * lanes_, 0.0f);
    if (t.bias != nullptr) std::copy_n(t.bias, problem_.src.C, bias);
    ForEachRange(problem_.src.N * blocks_, std::max(src_plane_, dst_plane_),
                 bias + blocks_ * lanes_, RowFloats(),
                 [&](int64_t begin, int64_t end, float* rows) {
                   for (int64_t i = begin; i < end; ++i) WritePlane(t, i, weight, bias, rows);
                 });
  }

 private:
  // A thread's buffers: a ring of src, and a plane of dst.
  int64_t RingFloats() const { return plane_.kernel * src_row_; }
  int64_t RowFloats() const { return RingFloats() + (streams_ ? dst_plane_ : 0); }

  void WritePlane(const ConvolutionTensors& t, int64_t i, const float* weight, const float* bias,
                  float* rows) const {
    const int64_t block = i % blocks_;
    const DepthwiseEpilogue epilogue = {bias + block * lanes_, LowerBound(problem_.activation),
                                        UpperBound(problem_.activation)};
    DepthwiseOutput dst = {.data = t.dst + i * dst_plane_};
    if (streams_ && CanStreamTo(t.dst)) {
      dst.buffer = rows + RingFloats();
      dst.buffer_rows = t.dst_moments ? plane_.OH : 1;
    }
    DepthwiseMoments moments;
    if (t.dst_moments) {
      const int64_t at = t.dst_moments.At(problem_.dst, i / blocks_, 0, block);
      moments = {t.dst_moments.mean + at, t.dst_moments.m2 + at};
    }
    RT_KERNEL(DepthwiseForward, plane_, Src(t, i, rows), weight + block * taps_ * lanes_, epilogue,
              dst, moments);
  }

  const bool streams_ = IsWorthStreaming(problem_.dst);
};

// Both gradients, or those that are wanted: the pointers of the others are null.
class DepthwiseBackwardAlgorithm final : public Depthwise {
 public:
  using Depthwise::Depthwise;

  bool takes_gradient_map() const override { return true; }
  int64_t gradient_sums_pixels() const override { return problem_.src.plane(); }
  size_t scratch_bytes() const override {
    return (PackedFloats() + slots_ * blocks_ * sum_floats_ + threads_ * RowFloats()) *
           sizeof(float);
  }

  void Run(const ConvolutionTensors& t) override {
    auto* weight = reinterpret_cast<float*>(t.scratch);
    float* sums = weight + PackedFloats();
    if (t.diff_src != nullptr) PackWeights(t.weight, weight);
    const int64_t items = slots_ * blocks_,
                  floats = std::max(src_plane_, dst_plane_) * kSamplesPerSlot;
    ForEachRange(items, floats, sums + items * sum_floats_, RowFloats(),
                 [&](int64_t begin, int64_t end, float* rows) {
                   while (begin < end) {  // one slot at a time
                     const int64_t slot = begin / blocks_, first = begin % blocks_;
                     const int64_t count = std::min(end - begin, blocks_ - first);
                     RunSlot(t, slot, first, first + count, weight, rows,
                             sums + begin * sum_floats_);
                     begin += count;
                   }
                 });
    if (t.diff_weight == nullptr) return;
    ParallelFor(blocks_, Grain(slots_ * sum_floats_), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        WriteSum(t, block, sums + block * sum_floats_);
      }
    });
  }

 private:
  // Samples that share a sum: fewer sums to write and add, but enough units of work for the
  // threads.
  static constexpr int64_t kSamplesPerSlot = 4;

  // A thread's buffers: rings of src and of diff_dst, and a row of diff_src.
  int64_t RowFloats() const { return plane_.kernel * (src_row_ + dst_row_) + src_row_; }

  // Blocks [first, last) of one slot of samples, and the sums over the slot.
  void RunSlot(const ConvolutionTensors& t, int64_t slot, int64_t first, int64_t last,
               const float* weight, float* rows, float* sums) const {
    std::fill_n(sums, (last - first) * sum_floats_, 0.0f);
    const int64_t end = std::min((slot + 1) * kSamplesPerSlot, problem_.src.N);
    for (int64_t n = slot * kSamplesPerSlot; n < end; ++n) {
      for (int64_t block = first; block < last; ++block) {
        RunPlane(t, n * blocks_ + block, weight, rows, sums + (block - first) * sum_floats_);
      }
    }
  }

  void RunPlane(const ConvolutionTensors& t, int64_t i, const float* weight, float* rows,
                float* sum) const {
    const int64_t block = i % blocks_;
    float* ring = rows + plane_.kernel * src_row_;
    float* row = ring + plane_.kernel * dst_row_;
    DepthwiseOutput diff_src;
    if (t.diff_src != nullptr) diff_src.data = t.diff_src + i * src_plane_;
    if (streams_ && CanStreamTo(t.diff_src)) diff_src.buffer = row;
    DepthwiseSums sums;
    if (t.diff_src_sums) {
      const int64_t at = t.diff_src_sums.At(problem_.src, i / blocks_, 0, block);
      sums = {t.diff_src_sums.g + at, t.diff_src_sums.gx + at};
    }
    RT_KERNEL(DepthwiseBackward, plane_, t.src != nullptr ? Src(t, i, rows) : DepthwiseSrc{},
              DiffDst(t, i, ring), weight + block * taps_ * lanes_, diff_src,
              t.diff_weight != nullptr ? sum : nullptr,
              t.diff_bias != nullptr ? sum + taps_ * lanes_ : nullptr, sums);
  }

  // Plane i of diff_dst.
  DepthwiseGradient DiffDst(const ConvolutionTensors& t, int64_t i, float* ring) const {
    ChannelGradient map = t.diff_dst_map.From(i % blocks_ * lanes_);
    if (!map.is_identity()) map.src += i * dst_plane_;
    return {t.diff_dst + i * dst_plane_, map, ring};
  }

  // Adds the sums of all slots to those of the first, and writes them to the gradients.
  void WriteSum(const ConvolutionTensors& t, int64_t block, float* total) const {
    for (int64_t slot = 1; slot < slots_; ++slot) {
      const float* sum = total + slot * blocks_ * sum_floats_;
      for (int64_t i = 0; i < sum_floats_; ++i) total[i] += sum[i];
    }
    for (int64_t c = 0; c < ChannelsOf(block); ++c) {
      float* to = t.diff_weight + (block * lanes_ + c) * taps_;
      for (int64_t tap = 0; tap < taps_; ++tap) to[tap] = total[tap * lanes_ + c];
      if (t.diff_bias != nullptr) t.diff_bias[block * lanes_ + c] = total[taps_ * lanes_ + c];
    }
  }

  const bool streams_ = IsWorthStreaming(problem_.src);
  const int64_t slots_ = CeilDivide(problem_.src.N, kSamplesPerSlot);
  const int64_t sum_floats_ = (taps_ + 1) * lanes_;  // per block; the last lanes are the bias'
};

}  // namespace

std::unique_ptr<ConvolutionAlgorithm> CreateDepthwise(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction) {
  if (!IsSupported(problem)) return nullptr;
  if (direction == ConvolutionDirection::kForward) {
    return std::make_unique<DepthwiseForwardAlgorithm>(problem);
  }
  return std::make_unique<DepthwiseBackwardAlgorithm>(problem);
}

}  // namespace ringtail
