#include "layers/kernels/bf16/image_bf16.h"

#ifdef __AVX512F__
#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/piece_sums.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

constexpr int kPixels = 14;  // at a time, with two blocks of outputs: 28 sums in registers

// Block `x` of the panel: bias, activation; stores, and takes moments of what is stored.
template <int kRows>
[[gnu::always_inline]] inline void Finish(const ImageBf16Product& p, int x, Bfloat16* dst,
                                          PieceMoments* moments, Vec (&sum)[kRows]) {
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
  RoundAndStore(sum, dst + x * p.dst_block_stride);
  if (p.mean != nullptr) moments->Add(x, sum);
}

template <int kRows, int kVecs>
RT_BF16_PRODUCTS void Micro(const ImageBf16Product& p, const Bfloat16* in, Bfloat16* dst,
                            PieceMoments* moments) {
  __m512 sum[kRows][kVecs];
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) sum[row][x] = _mm512_setzero_ps();
  }
  const Bfloat16* weight = p.weight;
  for (int64_t line = 0; line < p.lines; ++line, in += p.line_stride) {
#pragma GCC unroll 1
    for (int64_t pair = 0; pair < p.pairs; ++pair, weight += kVecs * kBf16Pair) {
      AddPair(in + 2 * pair, weight, sum, p.pixel_step);
    }
  }
#pragma GCC unroll 2
  for (int x = 0; x < kVecs; ++x) {
    Vec block[kRows];
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) block[row] = reinterpret_cast<Vec>(sum[row][x]);
    Finish(p, x, dst, moments, block);
  }
  moments->empty = false;
}

template <int kRows, int kVecs>
void MicroOf(int64_t rows, const ImageBf16Product& p, const Bfloat16* in, Bfloat16* dst,
             PieceMoments* moments) {
  if (rows == kRows) return Micro<kRows, kVecs>(p, in, dst, moments);
  if constexpr (kRows > 1) MicroOf<kRows - 1, kVecs>(rows, p, in, dst, moments);
}

template <int kVecs>
void Multiply(const ImageBf16Product& p) {
  // As few groups of at most kPixels as possible, of nearly the same size.
  const int64_t groups = CeilDivide(p.columns, kPixels);
  const int64_t pixels = p.columns / groups, larger = p.columns % groups;
  PieceMoments moments;
  for (int64_t y = 0; y < p.rows; ++y) {
    const Bfloat16* in = p.in + y * p.row_lines * p.line_stride;
    Bfloat16* dst = p.dst + y * p.columns * kLanes;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t n = pixels + (group < larger ? 1 : 0);
      MicroOf<kPixels, kVecs>(n, p, in, dst, &moments);
      in += n * p.pixel_step;
      dst += n * kLanes;
    }
  }
  if (p.mean != nullptr) moments.Write(kVecs, p.rows * p.columns, p.mean, p.m2);
}

// Of the numbers of two registers, the one of each place of the result.
struct Order {
  alignas(64) uint16_t at[kBf16Pair];
  __m512i Index() const { return _mm512_load_si512(at); }
};

}  // namespace

void PackImageLine(const float* row, int64_t plane_stride, int64_t channels, int64_t pixels,
                   Bfloat16* line) {
  Order order[2];  // of [channel][pixel], 4 x 16, to [pixel][channel]
  for (int64_t i = 0; i < 2 * kBf16Pair; ++i) {
    const int64_t from = i % channels * kLanes + i / channels;
    order[i / kBf16Pair].at[i % kBf16Pair] = static_cast<uint16_t>(from % (2 * kBf16Pair));
  }
  const __m512i first = order[0].Index(), second = order[1].Index();
  for (int64_t x = 0; x < pixels; x += kLanes) {
    const int64_t left = Min(kLanes, pixels - x);
    const auto mask = static_cast<__mmask16>((1U << left) - 1);
    Vec plane[kMostImageChannels] = {};
    for (int64_t c = 0; c < channels; ++c) {
      plane[c] = reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(mask, row + c * plane_stride + x));
    }
    const __m512i low = RoundTwo(plane[0], plane[1]), high = RoundTwo(plane[2], plane[3]);
    Bfloat16* const to = line + x * channels;
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, first, high));
    if (channels <= 2) continue;
    _mm512_storeu_si512(to + kBf16Pair, _mm512_permutex2var_epi16(low, second, high));
  }
}

void ImageBf16Multiply(const ImageBf16Product& product) {
  if (product.panel_blocks == 2) return Multiply<2>(product);
  Multiply<1>(product);
}

void ExpandImageLine(const Bfloat16* line, int64_t pixel_step, int64_t blocks, int64_t pairs,
                     Bfloat16* expanded, int64_t block_stride) {
  for (int64_t block = 0; block < blocks; ++block) {
    Order order;
    for (int64_t i = 0; i < kBf16Pair; ++i) {
      order.at[i] = static_cast<uint16_t>(block * kLanes + i / 2 + i % 2 * pixel_step);
    }
    const __m512i index = order.Index();
    const Bfloat16* from = line;
    Bfloat16* to = expanded + block * block_stride;
    for (int64_t pair = 0; pair < pairs; ++pair, from += 2 * pixel_step, to += kBf16Pair) {
      const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + kBf16Pair);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, index, high));
    }
  }
}

void AddBf16Pixels(const Bfloat16* blob, int64_t pixels, double* sums) {
  Vec sum[2] = {};  // two chains
  for (int64_t p = 0; p < pixels; ++p) sum[p % 2] += Load(blob + p * kLanes);
  const Vec total = sum[0] + sum[1];
  for (int lane = 0; lane < kLanes; ++lane) sums[lane] += total[lane];
}

#else

void PackImageLine(const float*, int64_t, int64_t, int64_t, Bfloat16*) { __builtin_trap(); }
void ImageBf16Multiply(const ImageBf16Product&) { __builtin_trap(); }
void ExpandImageLine(const Bfloat16*, int64_t, int64_t, int64_t, Bfloat16*, int64_t) {
  __builtin_trap();
}
void AddBf16Pixels(const Bfloat16*, int64_t, double*) { __builtin_trap(); }

#endif

}  // namespace ringtail::RT_KERNEL_ISA
