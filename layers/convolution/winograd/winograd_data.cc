#include "layers/convolution/winograd/winograd_data.h"

#include <algorithm>

#include "core/check.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_operands.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

constexpr int64_t kPanelBlocks = 2;  // of output channels: what the product keeps in registers
constexpr int64_t kFilterTaps = 9;
// Streams that are a power of two apart would share the sets of a cache: one line keeps them apart.
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLineFloats = kLineBytes / static_cast<int64_t>(sizeof(float));
// U larger than a share of the third-level cache is made panel by panel; and a smaller one, too,
// where so few tiles read it that each thread would read more of U than of V.
constexpr int64_t kMaxBytesOfU = 16 << 20;
constexpr int64_t kMaxBytesOfUForFewTiles = 4 << 20;
// Products of bf16 leave less time to read U: a smaller one is divided by panels already, and kept
// where V comes in several blocks.
constexpr int64_t kMaxBytesOfBf16UByTiles = 3 << 20;
constexpr int64_t kFewTiles = 256;
// V by tiles: about what a core's second-level cache holds beside M and a slice of U.
constexpr int64_t kBytesOfV = 512 << 10;
constexpr int64_t kMaxTiles = 192;
// V by panels: a share of the third-level cache; M then is of few tiles.
constexpr int64_t kSharedBytesOfV = 12 << 20;
constexpr int64_t kPanelTiles = 48;

template <typename Operand>
constexpr bool kIsBf16 = sizeof(Operand) < sizeof(float);

template <typename Operand>
constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(Operand));

}  // namespace

template <typename Operand>
struct WinogradData<Operand>::Call {
  const float* src;
  ChannelAffine affine;
  const float *weight, *bias;
  float low, high;
  float* dst;
  Operand *u, *v;  // of all panels or threads, in scratch
  float* m;
};

template <typename Operand>
WinogradData<Operand>::WinogradData(const WinogradProblem& problem, ConvolutionDirection direction,
                                    int threads)
    : tile_(problem.tile),
      slices_(problem.slices()),
      lanes_(RT_KERNEL(WinogradLanes)()),
      threads_(threads) {
  RT_CHECK(kIsBf16<Operand> ? problem.SupportsBf16() : problem.IsSupported(),
           "not a convolution for Winograd");
  const bool forward = direction == ConvolutionDirection::kForward;
  const BlobDesc& in = forward ? problem.src : problem.dst;
  const BlobDesc& out = forward ? problem.dst : problem.src;
  const Window& w = problem.window;
  channels_ = in.C;
  channel_blocks_ = in.channel_blocks();
  outputs_ = out.C;
  output_blocks_ = out.channel_blocks();
  panels_ = CeilDivide(output_blocks_, kPanelBlocks);
  // Backward: padding that makes the flipped filter end where the filter began.
  input_ = forward ? problem.Grid(in, w.PT, w.PL, out) : problem.Grid(in, 2 - w.PT, 2 - w.PL, out);
  output_ = problem.Grid(out, 0, 0, out);
  // weight is (K, C, 3, 3), K the channels of dst.
  const int64_t of_k = problem.src.C * kFilterTaps, of_c = kFilterTaps;
  filters_ = {.lane_stride = forward ? of_k : of_c,
              .channel_stride = forward ? of_c : of_k,
              .channels = channels_,
              .flipped = !forward};
  filter_block_stride_ = filters_.lane_stride * lanes_;
  tiles_ = in.N * input_.tiles_y * input_.tiles_x;
  DivideWork();
  u_at_ = scratch_.Add<Operand>((keeps_u_ ? panels_ : threads_) * SizeOfU());
  v_at_ = scratch_.Add<Operand>((by_panels_ ? 1 : threads_) * SizeOfV());
  m_at_ = scratch_.Add<float>(threads_ * SizeOfM());
}

template <typename Operand>
void WinogradData<Operand>::DivideWork() {
  const int64_t group = RT_KERNEL(WinogradTileGroup)();
  const int64_t bytes_per_tile = slices_ * channels_ * static_cast<int64_t>(sizeof(Operand));
  const int64_t bytes_of_u = bytes_per_tile * outputs_;
  const int64_t most = kIsBf16<Operand>      ? kMaxBytesOfBf16UByTiles
                       : tiles_ <= kFewTiles ? kMaxBytesOfUForFewTiles
                                             : kMaxBytesOfU;
  by_panels_ = bytes_of_u > most;
  if (by_panels_) {
    v_tiles_ = EqualBlocks(tiles_, kSharedBytesOfV / bytes_per_tile, group);
    m_tiles_ = EqualBlocks(v_tiles_, kPanelTiles, group);
  } else {
    v_tiles_ = EqualBlocks(CeilDivide(tiles_, threads_),
                           std::min(kBytesOfV / bytes_per_tile / group * group, kMaxTiles), group);
    m_tiles_ = kIsBf16<Operand> ? EqualBlocks(v_tiles_, kPanelTiles, group) : v_tiles_;
  }
  keeps_u_ = !by_panels_ || (kIsBf16<Operand> && v_tiles_ < tiles_ && bytes_of_u <= kMaxBytesOfU);
}

template <typename Operand>
int64_t WinogradData<Operand>::PanelBlocks(int64_t panel) const {
  return std::min(kPanelBlocks, output_blocks_ - panel * kPanelBlocks);
}
template <typename Operand>
int64_t WinogradData<Operand>::SliceOfU() const {
  return channels_ * kPanelBlocks * lanes_ + kLine<Operand>;
}
template <typename Operand>
int64_t WinogradData<Operand>::SliceOfV() const {
  return channel_blocks_ * v_tiles_ * lanes_ + kLine<Operand>;
}
template <typename Operand>
int64_t WinogradData<Operand>::SliceOfM() const {
  return kPanelBlocks * m_tiles_ * lanes_ + kLineFloats;
}

template <typename Operand>
void WinogradData<Operand>::Run(const float* src, const ChannelAffine& affine, const float* weight,
                                const float* bias, float low, float high, float* dst,
                                std::byte* scratch) const {
  const Call call = {src,
                     affine,
                     weight,
                     bias,
                     low,
                     high,
                     dst,
                     ArrayAt<Operand>(scratch, u_at_),
                     ArrayAt<Operand>(scratch, v_at_),
                     ArrayAt<float>(scratch, m_at_)};
  if (keeps_u_) TransformPanels(call);
  if (by_panels_) return RunByPanels(call);
  RunByTiles(call);
}

template <typename Operand>
void WinogradData<Operand>::TransformPanels(const Call& call) const {
  ParallelFor(panels_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      TransformPanel(call, panel, call.u + panel * SizeOfU());
    }
  });
}

template <typename Operand>
void WinogradData<Operand>::RunByTiles(const Call& call) const {
  ForEachThread(threads_, [&](int64_t thread) {
    Operand* v = call.v + thread * SizeOfV();
    float* m = call.m + thread * SizeOfM();
    const int64_t begin = tiles_ * thread / threads_, end = tiles_ * (thread + 1) / threads_;
    for (int64_t first = begin; first < end; first += v_tiles_) {
      const int64_t last = std::min(end, first + v_tiles_);
      for (int64_t block = 0; block < channel_blocks_; ++block) {
        TransformInput(call, block, first, last, v);
      }
      for (int64_t panel = 0; panel < panels_; ++panel) {
        MultiplyPanel(call, panel, call.u + panel * SizeOfU(), v, first, last, m);
      }
    }
  });
}

template <typename Operand>
void WinogradData<Operand>::RunByPanels(const Call& call) const {
  Operand* const v = call.v;
  for (int64_t first = 0; first < tiles_; first += v_tiles_) {
    const int64_t last = std::min(tiles_, first + v_tiles_);
    ParallelFor(channel_blocks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        TransformInput(call, block, first, last, v);
      }
    });
    ForEachThread(threads_, [&](int64_t thread) {
      float* m = call.m + thread * SizeOfM();
      const int64_t end = panels_ * (thread + 1) / threads_;
      for (int64_t panel = panels_ * thread / threads_; panel < end; ++panel) {
        Operand* u = call.u + (keeps_u_ ? panel : thread) * SizeOfU();
        if (!keeps_u_) TransformPanel(call, panel, u);
        MultiplyPanel(call, panel, u, v, first, last, m);
      }
    });
  }
}

template <typename Operand>
void WinogradData<Operand>::TransformPanel(const Call& call, int64_t panel, Operand* u) const {
  constexpr int64_t kChannels = WinogradOperands<Operand>::kChannels;
  for (int64_t i = 0; i < PanelBlocks(panel); ++i) {
    const int64_t block = panel * kPanelBlocks + i;
    WinogradOperands<Operand>::Filter(tile_, filters_, call.weight + block * filter_block_stride_,
                                      u + i * lanes_ * kChannels,
                                      PanelBlocks(panel) * lanes_ * kChannels, SliceOfU());
  }
}

template <typename Operand>
void WinogradData<Operand>::TransformInput(const Call& call, int64_t block, int64_t first,
                                           int64_t last, Operand* v) const {
  WinogradOperands<Operand>::Input(tile_, input_, WinogradPlane(input_, call.src, block, lanes_),
                                   call.affine.From(block * lanes_), first, last,
                                   v + block * v_tiles_ * lanes_, SliceOfV());
}

template <typename Operand>
void WinogradData<Operand>::MultiplyPanel(const Call& call, int64_t panel, const Operand* u,
                                          const Operand* v, int64_t first, int64_t last,
                                          float* m) const {
  for (int64_t tile = first; tile < last; tile += m_tiles_) {
    MultiplyTiles(call, panel, u, v + (tile - first) * lanes_, tile,
                  std::min(last, tile + m_tiles_), m);
  }
}

template <typename Operand>
void WinogradData<Operand>::MultiplyTiles(const Call& call, int64_t panel, const Operand* u,
                                          const Operand* v, int64_t first, int64_t last,
                                          float* m) const {
  for (int64_t slice = 0; slice < slices_; ++slice) {
    WinogradOperands<Operand>::Multiply({.v = v + slice * SliceOfV(),
                                         .v_block_stride = v_tiles_ * lanes_,
                                         .channel_blocks = channel_blocks_,
                                         .u = u + slice * SliceOfU(),
                                         .panel_blocks = static_cast<int>(PanelBlocks(panel)),
                                         .m = m + slice * SliceOfM(),
                                         .m_block_stride = m_tiles_ * lanes_,
                                         .tiles = last - first});
  }
  for (int64_t i = 0; i < PanelBlocks(panel); ++i) {
    const int64_t block = panel * kPanelBlocks + i;
    const WinogradEpilogue epilogue = {
        .bias = call.bias != nullptr ? call.bias + block * lanes_ : nullptr,
        .low = call.low,
        .high = call.high};
    WinogradOperands<Operand>::Output(tile_, output_, m + i * m_tiles_ * lanes_, SliceOfM(), first,
                                      last, epilogue,
                                      WinogradPlane(output_, call.dst, block, lanes_));
  }
}

template class WinogradData<float>;
template class WinogradData<Bfloat16>;

}  // namespace ringtail
