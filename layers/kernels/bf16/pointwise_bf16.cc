#include "layers/kernels/bf16/pointwise_bf16.h"

#ifdef __AVX512F__
#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/piece_sums.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

constexpr int kPixels = kPointwiseBf16Pixels;

// The pixels that one call of Micro reads and writes.
struct Pixels {
  const Bfloat16* in;
  Bfloat16* out;
  PieceMoments* moments;  // null: not wanted
  PieceSums* sums;        // null: not wanted
  const Bfloat16* sums_src;
};

// Block `x` of the panel: bias, activation, what is there already; stores, and what is taken of it.
template <int kRows>
[[gnu::always_inline]] inline void Finish(const PointwiseBf16Product& p, int x,
                                          const Pixels& pixels, Vec (&sum)[kRows]) {
  Bfloat16* const to = pixels.out + x * p.out_block_stride;
  if (p.bias != nullptr) {
    const Vec bias = Load(p.bias + x * kLanes);
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) sum[row] += bias;
  }
  if (p.add) {
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) sum[row] += Load(to + row * kLanes);
  }
  if (p.clamp) {
    const Vec low = Broadcast(p.low), high = Broadcast(p.high);
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) sum[row] = Clamped(sum[row], low, high);
  }
  RoundAndStore(sum, to);
  if (pixels.moments != nullptr) pixels.moments->Add(x, sum);
  if (pixels.sums != nullptr) {
    pixels.sums->Add(p.sums.affine, x, pixels.sums_src + x * p.out_block_stride, sum);
  }
}

// `next_weight`: numbers between the weights that this call reads and those that it fetches.
template <int kRows, int kVecs>
RT_BF16_PRODUCTS void Micro(const PointwiseBf16Product& p, int64_t next_weight,
                            const Pixels& pixels) {
  if (pixels.sums != nullptr) {
    PieceSums::Fetch<kRows>(pixels.sums_src, p.out_block_stride, kVecs);
  }
  __m512 sum[kRows][kVecs];
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) sum[row][x] = _mm512_setzero_ps();
  }
  const Bfloat16* in = pixels.in;
  const Bfloat16* weight = p.weight;
  for (int64_t block = 0; block < p.channel_blocks; ++block, in += p.in_block_stride) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; lane += 2, weight += kVecs * kBf16Pair) {
      // The pixels of the next call, which the hardware does not foresee across channel blocks.
      __builtin_prefetch(in + (kRows + lane) * kLanes);
#pragma GCC unroll 2
      for (int x = 0; x < kVecs; ++x) __builtin_prefetch(weight + next_weight + x * kBf16Pair);
      AddPair(in + lane, weight, sum);
    }
  }
#pragma GCC unroll 2
  for (int x = 0; x < kVecs; ++x) {
    Vec block[kRows];
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) block[row] = reinterpret_cast<Vec>(sum[row][x]);
    Finish(p, x, pixels, block);
  }
  if (pixels.moments != nullptr) pixels.moments->empty = false;
}

template <int kRows, int kVecs>
void MicroOf(int64_t rows, const PointwiseBf16Product& p, int64_t next_weight,
             const Pixels& pixels) {
  if (rows == kRows) return Micro<kRows, kVecs>(p, next_weight, pixels);
  if constexpr (kRows > 1) MicroOf<kRows - 1, kVecs>(rows, p, next_weight, pixels);
}

template <int kVecs>
void Multiply(const PointwiseBf16Product& p) {
  // As few groups of at most kPixels as possible, of nearly the same size.
  const int64_t groups = CeilDivide(p.pixels, kPixels);
  const int64_t rows = p.pixels / groups, larger = p.pixels % groups;
  const bool takes_sums = p.sums.src != nullptr;
  for (int64_t piece = 0; piece < p.pieces; ++piece) {
    PieceMoments moments;
    PieceSums sums;
    Pixels pixels = {.in = p.in + piece * p.in_sample_stride,
                     .out = p.out + piece * p.out_sample_stride,
                     .moments = p.mean != nullptr ? &moments : nullptr,
                     .sums = takes_sums ? &sums : nullptr,
                     .sums_src = takes_sums ? p.sums.src + piece * p.out_sample_stride : nullptr};
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t n = rows + (group < larger ? 1 : 0);
      const bool last = group + 1 == groups && piece + 1 == p.pieces;
      MicroOf<kPixels, kVecs>(n, p, last ? p.next_weight - p.weight : 0, pixels);
      pixels.in += n * kLanes;
      pixels.out += n * kLanes;
      if (takes_sums) pixels.sums_src += n * kLanes;
    }
    if (p.mean != nullptr) {
      const int64_t to = piece * p.moments_stride;
      moments.Write(kVecs, p.pixels, p.mean + to, p.m2 + to);
    }
    if (takes_sums) {
      const int64_t to = piece * p.sums.stride;
      sums.Write(kVecs, p.sums.g + to, p.sums.gx + to);
    }
  }
}

// Where a panel or its channels end within a block.
void PackRest(const PointwiseBf16Panel& p, int64_t k, int64_t c, int64_t width, Bfloat16* to) {
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int64_t half = 0; half < 2; ++half) {
      const bool inside = k + i < p.outputs && c + half < p.channels;
      const float w = inside ? p.weight[(k + i) * p.k_stride + (c + half) * p.c_stride] : 0.0F;
      to[c / 2 * width + 2 * (k + i) + half] = Narrow(w);
    }
  }
}

// kLanes outputs of 2 kLanes channels, which are adjacent: pairs are made, then transposed.
void PackTransposed(const float* from, int64_t k_stride, Bfloat16* to, int64_t width) {
  Vec rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    const float* row = from + i * k_stride;
    rows[i] = reinterpret_cast<Vec>(RoundTwo(Load(row), Load(row + kLanes)));
  }
  TransposeRows(rows);
#pragma GCC unroll 16
  for (int pair = 0; pair < kLanes; ++pair) {
    _mm512_storeu_si512(to + pair * width, reinterpret_cast<__m512i>(rows[pair]));
  }
}

}  // namespace

void PointwiseBf16Multiply(const PointwiseBf16Product& product) {
  if (product.panel_blocks == 2) return Multiply<2>(product);
  Multiply<1>(product);
}

void PointwiseBf16Pack(const PointwiseBf16Panel& p) {
  const int64_t width = p.panel_blocks * kBf16Pair;
  const int64_t channels = (p.channels + kLanes - 1) / kLanes * kLanes;  // with padding
  const __m512i index = PairIndex();
  for (int64_t k = 0; k < p.panel_blocks * kLanes; k += kLanes) {
    const bool full = k + kLanes <= p.outputs;
    const float* from = p.weight + k * p.k_stride;
    int64_t c = 0;
    if (full && p.c_stride == 1) {
      for (; c + kBf16Pair <= p.channels; c += kBf16Pair) {
        PackTransposed(from + c, p.k_stride, p.to + c / 2 * width + 2 * k, width);
      }
    }
    if (full && p.k_stride == 1) {
      for (; c + 2 <= p.channels; c += 2) {
        const float* pair = from + c * p.c_stride;
        _mm512_storeu_si512(p.to + c / 2 * width + 2 * k,
                            Interleaved(index, RoundTwo(Load(pair), Load(pair + p.c_stride))));
      }
    }
    for (; c < channels; c += 2) PackRest(p, k, c, width, p.to);
  }
}

void MapBf16Pixels(const Bfloat16* from, int64_t pixels, const ChannelAffine& affine,
                   Bfloat16* to) {
  const VecAffine map(affine);
  int64_t p = 0;
  for (; p + 2 <= pixels; p += 2) {
    const Bfloat16* two = from + p * kLanes;
    _mm512_storeu_si512(to + p * kLanes, RoundTwo(map(Load(two)), map(Load(two + kLanes))));
  }
  if (p == pixels) return;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + p * kLanes),
                      RoundOne(map(Load(from + p * kLanes))));
}

#else

void PointwiseBf16Multiply(const PointwiseBf16Product&) { __builtin_trap(); }
void PointwiseBf16Pack(const PointwiseBf16Panel&) { __builtin_trap(); }
void MapBf16Pixels(const Bfloat16*, int64_t, const ChannelAffine&, Bfloat16*) { __builtin_trap(); }

#endif

}  // namespace ringtail::RT_KERNEL_ISA
