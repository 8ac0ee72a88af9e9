#include "layers/convolution/winograd_data.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/kernels/winograd_multiply.h"

namespace ringtail {
namespace {

constexpr int64_t kPanelBlocks = 2;  // of output channels: what the product keeps in registers
constexpr int64_t kFilterTaps = 9;
// Streams that are a power of two apart would share the sets of a cache: one line keeps them apart.
constexpr int64_t kLineFloats = 16;
// V of one block of tiles: about what a core's second-level cache holds beside M and U.
constexpr int64_t kBytesOfV = 512 << 10;
constexpr int64_t kSharedBytesOfV = 4 << 20;  // third level
constexpr int64_t kMaxBlockTiles = 192;
// Fewer tiles per thread than this, and re-reading U for each block costs more than sharing V.
constexpr int64_t kMinTilesPerThread = 96;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

struct WinogradData::Call {
  const float *src, *weight, *bias;
  float low, high;
  float* dst;
  std::byte* scratch;
};

WinogradData::WinogradData(const WinogradProblem& problem, Direction direction, int threads)
    : tile_(problem.tile),
      slices_(problem.slices()),
      lanes_(RT_KERNEL(WinogradLanes)()),
      threads_(threads) {
  RT_CHECK(problem.IsSupported(), "not a convolution for Winograd");
  const bool forward = direction == Direction::kForward;
  const BlobDesc& in = forward ? problem.src : problem.dst;
  const BlobDesc& out = forward ? problem.dst : problem.src;
  const Window& w = problem.window;
  channels_ = in.C;
  channel_blocks_ = in.channel_blocks();
  outputs_ = out.C;
  output_blocks_ = out.channel_blocks();
  panels_ = (output_blocks_ + kPanelBlocks - 1) / kPanelBlocks;
  // Backward: padding that makes the turned filter end where the filter began.
  input_ = forward ? problem.Grid(in, w.PT, w.PL, out) : problem.Grid(in, 2 - w.PT, 2 - w.PL, out);
  output_ = problem.Grid(out, 0, 0, out);
  // weight is (K, C, 3, 3), K the channels of dst.
  const int64_t of_k = problem.src.C * kFilterTaps, of_c = kFilterTaps;
  filters_ = {.lane_stride = forward ? of_k : of_c,
              .lanes = lanes_,
              .channel_stride = forward ? of_c : of_k,
              .channels = channels_,
              .turned = !forward};
  filter_block_stride_ = filters_.lane_stride * lanes_;

  tiles_ = in.N * input_.tiles_y * input_.tiles_x;
  const int64_t group = RT_KERNEL(WinogradTileGroup)();
  by_panels_ = threads_ > 1 && tiles_ < threads_ * kMinTilesPerThread && panels_ >= threads_;
  const int64_t bytes_per_tile = slices_ * channels_ * static_cast<int64_t>(sizeof(float));
  const int64_t budget = by_panels_ ? kSharedBytesOfV : kBytesOfV;
  const int64_t fit = std::clamp(budget / bytes_per_tile / group * group, 2 * group,
                                 by_panels_ ? tiles_ : kMaxBlockTiles);
  const int64_t share = by_panels_ ? tiles_ : (tiles_ + threads_ - 1) / threads_;
  // Blocks of equal size, whole groups of tiles.
  const int64_t blocks = (share + fit - 1) / fit;
  block_tiles_ = std::min(RoundUp((share + blocks - 1) / blocks, group), RoundUp(share, 2));
}

int64_t WinogradData::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, output_blocks_ - panel * kPanelBlocks);
}
int64_t WinogradData::SliceOfU() const {
  return channels_ * kPanelBlocks * lanes_ + kLineFloats;
}
int64_t WinogradData::PanelFloats() const { return slices_ * SliceOfU(); }
int64_t WinogradData::SliceOfV() const {
  return channel_blocks_ * block_tiles_ * lanes_ + kLineFloats;
}
int64_t WinogradData::SliceOfM() const {
  return kPanelBlocks * block_tiles_ * lanes_ + kLineFloats;
}

size_t WinogradData::scratch_bytes() const {
  const int64_t u = panels_ * PanelFloats();
  const int64_t v = slices_ * SliceOfV() * (by_panels_ ? 1 : threads_);
  const int64_t m = slices_ * SliceOfM() * threads_;
  return static_cast<size_t>(u + v + m) * sizeof(float);
}

WinogradData::Buffers WinogradData::Split(std::byte* scratch, int64_t thread) const {
  Buffers buffers;
  buffers.u = reinterpret_cast<float*>(scratch);
  float* v = buffers.u + panels_ * PanelFloats();
  buffers.v = v + (by_panels_ ? 0 : thread * slices_ * SliceOfV());
  buffers.m = v + slices_ * SliceOfV() * (by_panels_ ? 1 : threads_) + thread * slices_ * SliceOfM();
  return buffers;
}

void WinogradData::Run(const float* src, const float* weight, const float* bias, float low,
                       float high, float* dst, std::byte* scratch) const {
  const Call call = {src, weight, bias, low, high, dst, scratch};
  TransformFilters(call, Split(scratch, 0).u);
  if (by_panels_) return RunByPanels(call);
  RunByTiles(call);
}

void WinogradData::TransformFilters(const Call& call, float* u) const {
  ParallelFor(output_blocks_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t panel = block / kPanelBlocks, blocks = PanelBlocks(panel);
      RT_KERNEL(WinogradFilter)
      (tile_, filters_, call.weight + block * filter_block_stride_,
       u + panel * PanelFloats() + block % kPanelBlocks * lanes_, blocks * lanes_, SliceOfU());
    }
  });
}

void WinogradData::TransformInput(const Call& call, int64_t block, int64_t first, int64_t last,
                                  float* v) const {
  RT_KERNEL(WinogradInput)
  (tile_, input_, call.src + block * input_.H * input_.W * lanes_, first, last,
   v + block * block_tiles_ * lanes_, SliceOfV());
}

// One panel of output channels of tiles [first, last), whose inputs are in V.
void WinogradData::MultiplyPanel(const Call& call, const Buffers& buffers, int64_t panel,
                                 int64_t first, int64_t last) const {
  WinogradProduct product = {.v = nullptr,
                             .v_block_stride = block_tiles_ * lanes_,
                             .channel_blocks = channel_blocks_,
                             .u = nullptr,
                             .panel_blocks = static_cast<int>(PanelBlocks(panel)),
                             .m = nullptr,
                             .m_block_stride = block_tiles_ * lanes_,
                             .tiles = last - first};
  for (int64_t slice = 0; slice < slices_; ++slice) {
    product.v = buffers.v + slice * SliceOfV();
    product.u = buffers.u + panel * PanelFloats() + slice * SliceOfU();
    product.m = buffers.m + slice * SliceOfM();
    RT_KERNEL(WinogradMultiply)(product);
  }
  for (int64_t i = 0; i < PanelBlocks(panel); ++i) {
    const int64_t block = panel * kPanelBlocks + i;
    const WinogradEpilogue epilogue = {
        .bias = call.bias != nullptr ? call.bias + block * lanes_ : nullptr,
        .low = call.low,
        .high = call.high};
    RT_KERNEL(WinogradOutput)
    (tile_, output_, buffers.m + i * block_tiles_ * lanes_, SliceOfM(), first, last, epilogue,
     call.dst + block * output_.H * output_.W * lanes_);
  }
}

void WinogradData::RunByTiles(const Call& call) const {
  ParallelFor(threads_, 1, [&](int64_t begin_thread, int64_t end_thread) {
    for (int64_t thread = begin_thread; thread < end_thread; ++thread) {
      const Buffers buffers = Split(call.scratch, thread);
      const int64_t begin = tiles_ * thread / threads_, end = tiles_ * (thread + 1) / threads_;
      for (int64_t first = begin; first < end; first += block_tiles_) {
        const int64_t last = std::min(end, first + block_tiles_);
        for (int64_t block = 0; block < channel_blocks_; ++block) {
          TransformInput(call, block, first, last, buffers.v);
        }
        for (int64_t panel = 0; panel < panels_; ++panel) {
          MultiplyPanel(call, buffers, panel, first, last);
        }
      }
    }
  });
}

void WinogradData::RunByPanels(const Call& call) const {
  for (int64_t first = 0; first < tiles_; first += block_tiles_) {
    const int64_t last = std::min(tiles_, first + block_tiles_);
    ParallelFor(channel_blocks_, 1, [&](int64_t begin, int64_t end) {
      const Buffers buffers = Split(call.scratch, 0);
      for (int64_t block = begin; block < end; ++block) {
        TransformInput(call, block, first, last, buffers.v);
      }
    });
    ParallelFor(threads_, 1, [&](int64_t begin_thread, int64_t end_thread) {
      for (int64_t thread = begin_thread; thread < end_thread; ++thread) {
        const Buffers buffers = Split(call.scratch, thread);
        const int64_t end = panels_ * (thread + 1) / threads_;
        for (int64_t panel = panels_ * thread / threads_; panel < end; ++panel) {
          MultiplyPanel(call, buffers, panel, first, last);
        }
      }
    });
  }
}

}  // namespace ringtail
