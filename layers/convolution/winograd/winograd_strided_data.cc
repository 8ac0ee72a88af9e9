#include "layers/convolution/winograd/winograd_strided_data.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_problem.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

using Problem = WinogradStridedProblem;

constexpr int64_t kPanelBlocks = 2;  // of output channels: what the product keeps in registers
constexpr int64_t kFilterTaps = 9;
constexpr int64_t kProducts = 81;
// Streams that are a power of two apart would share the sets of a cache: one line keeps them apart.
constexpr int64_t kLineFloats = 16;
constexpr int64_t kBytesOfV = 12 << 20;  // a share of the third-level cache
constexpr int64_t kPanelTiles = 48;      // M of so many tiles stays in the second-level cache

}  // namespace

struct WinogradStridedData::Call {
  const float *src, *weight, *bias;
  float low, high;
  float* dst;
};

WinogradStridedData::WinogradStridedData(const Problem& problem, Direction direction, int threads)
    : forward_(direction == Direction::kForward),
      lanes_(RT_KERNEL(WinogradLanes)()),
      group_(RT_KERNEL(WinogradTileGroup)()),
      threads_(threads),
      input_(forward_ ? problem.SrcGrid() : problem.DiffDstGrid()),
      output_(forward_ ? problem.DstGrid() : problem.DiffSrcGrid()) {
  RT_CHECK(problem.IsSupported(), "not a strided convolution for Winograd");
  const BlobDesc& in = forward_ ? problem.src : problem.dst;
  const BlobDesc& out = forward_ ? problem.dst : problem.src;
  channels_ = in.C;
  channel_blocks_ = in.channel_blocks();
  output_blocks_ = out.channel_blocks();
  panels_ = CeilDivide(output_blocks_, kPanelBlocks);
  // weight is (K, C, 3, 3), K the channels of dst.
  const int64_t of_k = problem.src.C * kFilterTaps, of_c = kFilterTaps;
  filters_ = {.lane_stride = forward_ ? of_k : of_c,
              .channel_stride = forward_ ? of_c : of_k,
              .channels = channels_,
              .flipped = !forward_};

  tiles_ = in.N * input_.tiles_y * input_.tiles_x;
  const int64_t bytes_per_tile =
      (forward_ ? kProducts : Problem::kSlices) * channels_ * static_cast<int64_t>(sizeof(float));
  v_tiles_ = EqualBlocks(tiles_, kBytesOfV / bytes_per_tile, group_);
  m_tiles_ = EqualBlocks(v_tiles_, kPanelTiles, group_);
  v_at_ = scratch_.Add<float>(SizeOfV());
  u_at_ = scratch_.Add<float>(threads_ * SizeOfU());
  m_at_ = scratch_.Add<float>(threads_ * SizeOfM());
}

int64_t WinogradStridedData::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, output_blocks_ - panel * kPanelBlocks);
}
int64_t WinogradStridedData::PhaseOfM() const { return kPanelBlocks * m_tiles_ * lanes_; }
int64_t WinogradStridedData::SliceOfU() const {
  return Problem::kPhases * channels_ * kPanelBlocks * lanes_ + kLineFloats;
}
int64_t WinogradStridedData::GroupOfV() const {
  return (forward_ ? Problem::kPhases : 1) * PhaseOfV();
}
int64_t WinogradStridedData::SliceOfV() const {
  return v_tiles_ / group_ * GroupOfV() + kLineFloats;
}
int64_t WinogradStridedData::SliceOfM() const {
  return (forward_ ? 1 : Problem::kPhases) * PhaseOfM() + kLineFloats;
}

void WinogradStridedData::Run(const float* src, const float* weight, const float* bias, float low,
                              float high, float* dst, std::byte* scratch) const {
  const Call call = {src, weight, bias, low, high, dst};
  float* const v = ArrayAt<float>(scratch, v_at_);
  float* const all_u = ArrayAt<float>(scratch, u_at_);
  float* const all_m = ArrayAt<float>(scratch, m_at_);
  for (int64_t first = 0; first < tiles_; first += v_tiles_) {
    const int64_t last = std::min(tiles_, first + v_tiles_);
    ParallelFor(channel_blocks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        TransformInput(call, block, first, last, v);
      }
    });
    ForEachThread(threads_, [&](int64_t thread) {
      float *u = all_u + thread * SizeOfU(), *m = all_m + thread * SizeOfM();
      const int64_t end = panels_ * (thread + 1) / threads_;
      for (int64_t panel = panels_ * thread / threads_; panel < end; ++panel) {
        RunPanel(call, panel, v, first, last, u, m);
      }
    });
  }
}

void WinogradStridedData::RunPanel(const Call& call, int64_t panel, const float* v, int64_t first,
                                   int64_t last, float* u, float* m) const {
  TransformPanel(call, panel, u);
  for (int64_t tile = first; tile < last; tile += m_tiles_) {
    const int64_t end = std::min(last, tile + m_tiles_);
    MultiplyPanel(panel, u, v + (tile - first) / group_ * GroupOfV(), end - tile, m);
    TransformOutput(call, panel, m, tile, end);
  }
}

void WinogradStridedData::TransformInput(const Call& call, int64_t block, int64_t first,
                                         int64_t last, float* v) const {
  const float* plane = WinogradPlane(input_, call.src, block, lanes_);
  float* to = v + block * group_ * lanes_;
  for (int64_t tile = first; tile < last; tile += group_, to += GroupOfV()) {
    const int64_t end = std::min(last, tile + group_);
    if (forward_) {
      RT_KERNEL(WinogradStridedInput, input_, plane, tile, end, to, SliceOfV(), PhaseOfV());
    } else {
      RT_KERNEL(WinogradStridedDiffDst, input_, plane, tile, end, to, SliceOfV());
    }
  }
}

void WinogradStridedData::TransformPanel(const Call& call, int64_t panel, float* u) const {
  for (int64_t i = 0; i < PanelBlocks(panel); ++i) {
    const int64_t block = panel * kPanelBlocks + i;
    RT_KERNEL(WinogradStridedFilter, filters_, call.weight + block * lanes_ * filters_.lane_stride,
              u + i * lanes_, PanelBlocks(panel) * lanes_, SliceOfU(), PhaseOfU(panel));
  }
}

void WinogradStridedData::MultiplyPanel(int64_t panel, const float* u, const float* v,
                                        int64_t tiles, float* m) const {
  for (int64_t slice = 0; slice < Problem::kSlices; ++slice) {
    const auto [first, count] = Problem::PhasesOf(slice);
    // Forward, the phases are further channels; backward, further outputs.
    for (int64_t phase = first; phase < first + (forward_ ? 1 : count); ++phase) {
      WinogradProduct product = {.v = v + slice * SliceOfV() + (forward_ ? phase * PhaseOfV() : 0),
                                 .v_block_stride = group_ * lanes_,
                                 .channel_blocks = (forward_ ? count : 1) * channel_blocks_,
                                 .u = u + slice * SliceOfU() + phase * PhaseOfU(panel),
                                 .panel_blocks = static_cast<int>(PanelBlocks(panel)),
                                 .m = m + slice * SliceOfM() + (forward_ ? 0 : phase * PhaseOfM()),
                                 .m_block_stride = m_tiles_ * lanes_};
      for (int64_t tile = 0; tile < tiles; tile += group_) {
        product.tiles = std::min(group_, tiles - tile);
        RT_KERNEL(WinogradMultiply, product);
        product.v += GroupOfV();
        product.m += group_ * lanes_;
      }
    }
  }
}

void WinogradStridedData::TransformOutput(const Call& call, int64_t panel, const float* m,
                                          int64_t first, int64_t last) const {
  for (int64_t i = 0; i < PanelBlocks(panel); ++i) {
    const int64_t block = panel * kPanelBlocks + i;
    const float* from = m + i * m_tiles_ * lanes_;
    float* plane = WinogradPlane(output_, call.dst, block, lanes_);
    const WinogradEpilogue epilogue = {
        .bias = call.bias != nullptr ? call.bias + block * lanes_ : nullptr,
        .low = call.low,
        .high = call.high};
    if (forward_) {
      RT_KERNEL(WinogradStridedOutput, output_, from, SliceOfM(), first, last, epilogue, plane);
    } else {
      RT_KERNEL(WinogradStridedDiffSrc, output_, from, SliceOfM(), PhaseOfM(), first, last,
                epilogue, plane);
    }
  }
}

}  // namespace ringtail
