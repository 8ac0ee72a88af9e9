#include "layers/kernels/pointwise.h"

#include "core/kernels/vec.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/piece_sums.h"

// Each micro-kernel keeps a block of the result in registers, kRows x kVecs accumulators; one
// operand comes as kVecs registers, the other as broadcasts from memory.
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kPixels = kRegisters == 32 ? 14 : 6;  // divides the planes of ImageNet's nets

// Half a register. A panel whose last block is at most half full multiplies no padding there, which
// networks with 24 channels notice. Where registers are shorter, so are blocks.
constexpr bool kHalves = kLanes == 16;
using Half = float __attribute__((vector_size(kLanes / 2 * sizeof(float)), may_alias));

[[gnu::always_inline, maybe_unused]] inline Half LowHalf(const Vec& v) {
  return reinterpret_cast<const Half&>(v);
}
[[gnu::always_inline, maybe_unused]] inline Vec Widen(Half half) {
  Vec wide = {};
  reinterpret_cast<Half&>(wide) = half;
  return wide;
}

// The accumulators of kRows pixels: kVecs whole blocks of output channels and, if kHalf, half a
// block.
template <int kRows, int kVecs, bool kHalf>
struct Sums {
  Vec whole[kVecs][kRows] = {};
  Half half[kRows] = {};  // unused unless kHalf
};

template <int kRows, int kVecs, bool kHalf>
[[gnu::always_inline]] inline void LoadSums(const PointwiseProduct& p, const float* out,
                                            Sums<kRows, kVecs, kHalf>& sums) {
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) {
      sums.whole[x][row] = Load(out + x * p.out_block_stride + row * kLanes);
    }
    if constexpr (kHalf) {
      sums.half[row] = LowHalf(Load(out + kVecs * p.out_block_stride + row * kLanes));
    }
  }
}

template <int kRows, int kVecs, bool kHalf>
[[gnu::always_inline]] inline void AddChannel(const float* pixels, const float* weight,
                                              Sums<kRows, kVecs, kHalf>& sums) {
  Vec w[kVecs + 1];
#pragma GCC unroll 3
  for (int x = 0; x < kVecs + kHalf; ++x) w[x] = Load(weight + x * kLanes);
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
    const Vec pixel = Broadcast(pixels[row * kLanes]);
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) sums.whole[x][row] += pixel * w[x];
    if constexpr (kHalf) sums.half[row] += LowHalf(pixel) * LowHalf(w[kVecs]);
  }
}

// Block `x` of the panel: bias, activation, stores.
template <int kRows>
[[gnu::always_inline]] inline void Finish(const PointwiseProduct& p, int x, Vec (&sum)[kRows],
                                          float* out) {
  if (p.bias != nullptr) {
    const Vec bias = Load(p.bias + x * kLanes);
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) sum[row] += bias;
  }
  if (p.clamp) {
    const Vec low = Broadcast(p.low), high = Broadcast(p.high);
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) sum[row] = Clamped(sum[row], low, high);
  }
  float* to = out + x * p.out_block_stride;
  if (p.stream) {
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) StoreStreaming(to + row * kLanes, sum[row]);
  } else {
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) Store(to + row * kLanes, sum[row]);
  }
}

// The pixels that one call of Micro reads and writes.
struct Pixels {
  const float* in;
  float* out;
  const float* fetch;     // null: nothing
  PieceMoments* moments;  // null: not wanted
  PieceSums* sums;        // null: not wanted
  const float* sums_src;
};

// `next_weight`: floats between the weights that this call reads and those that it fetches.
template <int kRows, int kVecs, bool kHalf>
void Micro(const PointwiseProduct& p, int64_t next_weight, const Pixels& pixels) {
  const float* in = pixels.in;
  float* out = pixels.out;
  const float* fetch = pixels.fetch;
  constexpr int kWidth = (kVecs + kHalf) * kLanes;
  Sums<kRows, kVecs, kHalf> sums;
  if (pixels.sums != nullptr) {
    PieceSums::Fetch<kRows>(pixels.sums_src, p.out_block_stride, kVecs + kHalf);
  }
  if (p.accumulate) LoadSums(p, out, sums);
  const float* weight = p.weight;
  int64_t left = p.channels;
  for (; left >= kLanes; left -= kLanes) {
#pragma GCC unroll 4
    for (int lane = 0; lane < kLanes; ++lane) {
      // The pixels of the next call, which the hardware does not foresee across channel blocks.
      __builtin_prefetch(in + (kRows + lane) * kLanes);
      if (fetch != nullptr) __builtin_prefetch(fetch + lane * kLanes, 0, 2);
#pragma GCC unroll 2
      for (int x = 0; x < kVecs; ++x) __builtin_prefetch(weight + next_weight + x * kLanes);
      AddChannel(in + lane, weight, sums);
      weight += kWidth;
    }
    in += p.in_block_stride;
    if (fetch != nullptr) fetch += p.fetch.block_stride;
  }
  for (int64_t lane = 0; lane < left; ++lane) {
    AddChannel(in + lane, weight, sums);
    weight += kWidth;
  }
#pragma GCC unroll 2
  for (int x = 0; x < kVecs; ++x) {
    Finish(p, x, sums.whole[x], out);
    if (pixels.moments != nullptr) pixels.moments->Add(x, sums.whole[x]);
    if (pixels.sums != nullptr) {
      pixels.sums->Add(p.sums.affine, x, pixels.sums_src + x * p.out_block_stride, sums.whole[x]);
    }
  }
  if constexpr (kHalf) {
    Vec widened[kRows];
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) widened[row] = Widen(sums.half[row]);
    Finish(p, kVecs, widened, out);
    if (pixels.moments != nullptr) pixels.moments->Add(kVecs, widened);
    if (pixels.sums != nullptr) {
      pixels.sums->Add(p.sums.affine, kVecs, pixels.sums_src + kVecs * p.out_block_stride, widened);
    }
  }
  if (pixels.moments != nullptr) pixels.moments->empty = false;
}

template <int kRows, int kVecs, bool kHalf>
void MicroOf(int64_t rows, const PointwiseProduct& p, int64_t next_weight, const Pixels& pixels) {
  if (rows == kRows) return Micro<kRows, kVecs, kHalf>(p, next_weight, pixels);
  if constexpr (kRows > 1) MicroOf<kRows - 1, kVecs, kHalf>(rows, p, next_weight, pixels);
}

template <int kVecs, bool kHalf>
void Multiply(const PointwiseProduct& p) {
  // As few groups of at most kPixels as possible, of nearly the same size.
  const int64_t groups = CeilDivide(p.pixels, kPixels);
  const int64_t rows = p.pixels / groups, larger = p.pixels % groups;
  for (int64_t piece = 0; piece < p.pieces; ++piece) {
    PieceMoments moments;
    PieceSums sums;
    const bool takes_sums = p.sums.src != nullptr;
    const PointwiseFetch& f = p.fetch;
    Pixels pixels = {.in = p.in + piece * p.in_sample_stride,
                     .out = p.out + piece * p.out_sample_stride,
                     .fetch = f.at == nullptr ? nullptr : f.at + piece * f.sample_stride,
                     .moments = p.mean != nullptr ? &moments : nullptr,
                     .sums = takes_sums ? &sums : nullptr,
                     .sums_src = takes_sums ? p.sums.src + piece * p.out_sample_stride : nullptr};
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t n = rows + (group < larger ? 1 : 0);
      const bool last = group + 1 == groups && piece + 1 == p.pieces;
      MicroOf<kPixels, kVecs, kHalf>(n, p, last ? p.next_weight - p.weight : 0, pixels);
      pixels.in += n * kLanes;
      pixels.out += n * kLanes;
      if (pixels.fetch != nullptr) pixels.fetch += n * kLanes;
      if (takes_sums) pixels.sums_src += n * kLanes;
    }
    if (p.mean != nullptr) {
      const int64_t to = piece * p.moments_stride;
      moments.Write(p.panel_blocks, p.pixels, p.mean + to, p.m2 + to);
    }
    if (takes_sums) {
      const int64_t to = piece * p.sums.stride;
      sums.Write(p.panel_blocks, p.sums.g + to, p.sums.gx + to);
    }
  }
}

}  // namespace

void PointwiseMultiply(const PointwiseProduct& product) {
  if (product.panel_blocks == 1) {
    Multiply<1, false>(product);
  } else if (kHalves && 2 * product.outputs <= 3 * kLanes) {
    Multiply<1, kHalves>(product);
  } else {
    Multiply<kPanel, false>(product);
  }
  if (product.stream) FinishStreaming();
}

void PointwisePack(const PointwisePanel& p) {
  const int64_t width = p.panel_blocks * kLanes;
  for (int64_t k = 0; k < width; k += kLanes) {
    const bool full = k + kLanes <= p.outputs;
    const float* from = p.weight + k * p.k_stride;
    float* to = p.to + k;
    int64_t c = 0;
    if (full && p.c_stride == 1) {
      for (; c + kLanes <= p.channels; c += kLanes) {
        TransposeTile(from + c, p.k_stride, to + c * width, width);
      }
    }
    if (full && p.k_stride == 1) {
      for (; c < p.channels; ++c) Store(to + c * width, Load(from + c * p.c_stride));
    }
    for (; c < p.channels; ++c) {
      for (int64_t i = 0; i < kLanes; ++i) {
        to[c * width + i] = k + i < p.outputs ? from[i * p.k_stride + c * p.c_stride] : 0;
      }
    }
  }
}

int64_t PointwiseLanes() { return kLanes; }
int64_t PointwisePixelGroup() { return kPixels; }

}  // namespace ringtail::RT_KERNEL_ISA
