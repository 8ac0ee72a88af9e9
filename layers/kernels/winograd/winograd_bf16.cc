#include "layers/kernels/winograd/winograd_bf16.h"

#ifdef __AVX512F__
#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/vec_affine.h"
#include "layers/kernels/vec_bfloat16.h"
#include "layers/kernels/winograd/winograd_matrices.h"
#include "layers/kernels/winograd/winograd_strips.h"
#include "layers/kernels/winograd/winograd_taps.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

using F2 = Winograd<2>;
constexpr int kTile = 2, kSide = F2::kPoints;
constexpr int kStripTiles = 16;  // their columns fit the first-level cache

// Row i of the slices of one strip: two tiles make up a register.
template <bool kPairs>
struct RowOfSlices {
  Bfloat16* at;  // slice (i, 0), first tile of all
  int64_t stride;
  __m512i index = PairIndex();

  // Tiles t and t + 1, t even.
  [[gnu::always_inline]] void StoreTwo(int j, int64_t t, Vec even, Vec odd) const {
    const __m512i two = RoundTwo(even, odd);
    _mm512_storeu_si512(at + j * stride + t * kLanes, kPairs ? Interleaved(index, two) : two);
  }
  // Tile t alone. An even one of pairs is put beside zeros, which its partner overwrites if it has
  // one.
  [[gnu::always_inline]] void StoreOne(int j, int64_t t, Vec v) const {
    Bfloat16* const to = at + j * stride;
    const __m256i one = RoundOne(v);
    if constexpr (!kPairs) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + t * kLanes), one);
    } else {
      const VecBits wide = __builtin_convertvector(reinterpret_cast<HalfBits>(one), VecBits);
      if (t % 2 == 0) {
        _mm512_storeu_si512(to + t * kLanes, reinterpret_cast<__m512i>(wide));
      } else {
        constexpr __mmask32 kOdd = 0xAAAAAAAA;
        _mm512_mask_storeu_epi16(to + (t - 1) * kLanes, kOdd,
                                 reinterpret_cast<__m512i>(wide << 16));
      }
    }
  }
};

// The rows of `count` tiles from their columns: tiles done, done + 1, ...
template <typename Transform, bool kPairs>
[[gnu::always_inline]] inline void TransformRow(const Vec* columns, int64_t done, int64_t count,
                                                const RowOfSlices<kPairs>& row) {
  const auto one = [&](int64_t t) {
    Vec out[kSide];
    Transform::Apply(columns + t * kTile, out);
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) row.StoreOne(j, done + t, out[j]);
  };
  int64_t t = done % 2;
  if (t == 1) one(0);
  for (; t + 2 <= count; t += 2) {
    Vec even[kSide], odd[kSide];
    Transform::Apply(columns + t * kTile, even);
    Transform::Apply(columns + (t + 1) * kTile, odd);
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) row.StoreTwo(j, done + t, even[j], odd[j]);
  }
  if (t < count) one(t);
}

// Transform reads overlapping tiles (Input) or disjoint ones (Gradient), whose pixels are then
// summed, too.
template <typename Transform, bool kPairs, typename Map>
void ToSlices(const WinogradGrid& grid, const Bfloat16* plane, const Map& map, int64_t first,
              int64_t last, const WinogradBf16Slices& to, double* sums) {
  constexpr int kOverlap = Transform::kIn - kTile;
  constexpr bool kSums = kOverlap == 0;
  Vec columns[kSide][kStripTiles * kTile + kOverlap];
  ForEachStrip<kStripTiles>(
      grid, first, last, [&](int64_t sample, int64_t ty, int64_t tx, int64_t count, int64_t done) {
        const Vec sum = TransformColumns<kTile, Transform>(
            grid, plane + sample * grid.sample_stride, map, ty, tx, count, columns);
        if constexpr (kSums) AddLanes(sum, sums);
        for (int i = 0; i < kSide; ++i) {
          TransformRow<Transform>(columns[i], done, count,
                                  RowOfSlices<kPairs>{to.at + i * kSide * to.stride, to.stride});
        }
      });
}

template <typename Transform, typename Map>
void ToSlicesOf(const WinogradGrid& grid, const Bfloat16* plane, const Map& map, int64_t first,
                int64_t last, const WinogradBf16Slices& to, double* sums) {
  if (to.pairs) return ToSlices<Transform, true>(grid, plane, map, first, last, to, sums);
  ToSlices<Transform, false>(grid, plane, map, first, last, to, sums);
}

}  // namespace

void WinogradBf16Input(const WinogradGrid& grid, const Bfloat16* plane, const ChannelAffine& affine,
                       int64_t first, int64_t last, const WinogradBf16Slices& v) {
  if (affine.is_identity()) {
    ToSlicesOf<F2::Input>(grid, plane, VecIdentity(), first, last, v, nullptr);
  } else {
    ToSlicesOf<F2::Input>(grid, plane, VecAffine(affine), first, last, v, nullptr);
  }
}

void WinogradBf16Gradient(const WinogradGrid& grid, const Bfloat16* plane, int64_t first,
                          int64_t last, const WinogradBf16Slices& z, double* sums) {
  ToSlicesOf<F2::Gradient>(grid, plane, VecIdentity(), first, last, z, sums);
}

void WinogradBf16Output(const WinogradGrid& grid, const float* m, int64_t slice_stride,
                        int64_t first, int64_t last, const WinogradEpilogue& epilogue,
                        Bfloat16* plane) {
  const Vec bias = epilogue.bias != nullptr ? Load(epilogue.bias) : Vec{};
  const Vec low = Broadcast(epilogue.low), high = Broadcast(epilogue.high);
  ForEachStrip<kStripTiles>(
      grid, first, last, [&](int64_t sample, int64_t ty, int64_t tx, int64_t count, int64_t done) {
        const int64_t y0 = ty * kTile, rows = Min(kTile, grid.H - y0);
        Bfloat16* image = plane + sample * grid.sample_stride + y0 * grid.W * kLanes;
        for (int64_t t = 0; t < count; ++t) {
          const float* src = m + (done + t) * kLanes;
          Vec columns[kTile][kSide];
#pragma GCC unroll 4
          for (int j = 0; j < kSide; ++j) {
            Vec in[kSide], out[kTile];
#pragma GCC unroll 4
            for (int i = 0; i < kSide; ++i) in[i] = Load(src + (i * kSide + j) * slice_stride);
            F2::Output::Apply(in, out);
#pragma GCC unroll 2
            for (int i = 0; i < kTile; ++i) columns[i][j] = out[i];
          }
          const int64_t x = (tx + t) * kTile;
          const bool whole = x + kTile <= grid.W;
#pragma GCC unroll 2
          for (int i = 0; i < kTile; ++i) {
            Vec out[kTile];
            F2::Output::Apply(columns[i], out);
            if (i >= rows) continue;
            Bfloat16* to = image + (i * grid.W + x) * kLanes;
            const Vec left = Clamped(out[0] + bias, low, high);
            if (whole) {
              _mm512_storeu_si512(to, RoundTwo(left, Clamped(out[1] + bias, low, high)));
            } else {
              _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), RoundOne(left));
            }
          }
        }
      });
}

void WinogradBf16Filter(const WinogradFilters& filters, const float* weight, Bfloat16* u,
                        int64_t u_stride, int64_t slice_stride) {
  const __m512i index = PairIndex();
  Vec taps[kFilterTaps * kLanes];
  for (int64_t first = 0; first < filters.channels; first += kLanes) {
    LoadTaps(filters, weight + first * filters.channel_stride, taps);
    for (int c = 0; c < kLanes; c += 2) {
      Vec out[2][kSide * kSide];
      TransformFilter<F2::Filter>(filters, taps + c * kFilterTaps, out[0]);
      TransformFilter<F2::Filter>(filters, taps + (c + 1) * kFilterTaps, out[1]);
      Bfloat16* to = u + (first + c) / 2 * u_stride;
#pragma GCC unroll 16
      for (int s = 0; s < kSide * kSide; ++s) {
        _mm512_storeu_si512(to + s * slice_stride,
                            Interleaved(index, RoundTwo(out[0][s], out[1][s])));
      }
    }
  }
}

#else

void WinogradBf16Input(const WinogradGrid&, const Bfloat16*, const ChannelAffine&, int64_t, int64_t,
                       const WinogradBf16Slices&) {
  __builtin_trap();
}
void WinogradBf16Gradient(const WinogradGrid&, const Bfloat16*, int64_t, int64_t,
                          const WinogradBf16Slices&, double*) {
  __builtin_trap();
}
void WinogradBf16Output(const WinogradGrid&, const float*, int64_t, int64_t, int64_t,
                        const WinogradEpilogue&, Bfloat16*) {
  __builtin_trap();
}
void WinogradBf16Filter(const WinogradFilters&, const float*, Bfloat16*, int64_t, int64_t) {
  __builtin_trap();
}

#endif

}  // namespace ringtail::RT_KERNEL_ISA
