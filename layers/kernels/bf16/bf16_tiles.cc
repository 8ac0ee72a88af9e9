#include "layers/kernels/bf16/bf16_tiles.h"

#ifdef __AVX512F__
#include <immintrin.h>

#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/clamp.h"
#include "layers/kernels/piece_sums.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

#define RT_BF16_TILES __attribute__((target("amx-tile,amx-bf16")))

namespace {

constexpr int64_t kRowBytes = 64;  // of a tile

// Palette 1: eight tiles of 16 rows of 64 bytes.
struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
// Not on the stack: GCC 12 believes that the instruction reads its first 8 bytes only.
constexpr TileConfig kConfig;

// Tiles 0 to 3 are sums of pixels (0 or 1) x outputs (0 or 1); 4 and 5 pixels; 6 and 7 weights.
template <bool kTwoPixels, bool kTwoOutputs>
RT_BF16_TILES void MultiplyGroup(const Bf16TileProduct& p, int64_t pixel) {
  const int64_t weight_block = p.channel_blocks * p.tap_count * kTileNumbers;
  _tile_zero(0);
  if (kTwoOutputs) _tile_zero(1);
  if (kTwoPixels) _tile_zero(2);
  if (kTwoPixels && kTwoOutputs) _tile_zero(3);
  const Bfloat16* weight = p.weight;
  const int64_t step_bytes = p.pixel_step * static_cast<int64_t>(sizeof(Bfloat16));
  for (int64_t block = 0; block < p.channel_blocks; ++block) {
    const Bfloat16* const in = p.in + block * p.in_block_stride + pixel * p.pixel_step;
    for (int64_t tap = 0; tap < p.tap_count; ++tap, weight += kTileNumbers) {
      const Bfloat16* const pixels = in + p.taps[tap];
      _tile_loadd(6, weight, kRowBytes);
      _tile_loadd(4, pixels, step_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if (kTwoPixels) {
        _tile_loadd(5, pixels + kTilePixels * p.pixel_step, step_bytes);
        _tile_dpbf16ps(2, 5, 6);
      }
      if (kTwoOutputs) {
        _tile_loadd(7, weight + weight_block, kRowBytes);
        _tile_dpbf16ps(1, 4, 7);
        if (kTwoPixels) _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  float* const out = p.out + pixel * kTileOutputs;
  _tile_stored(0, out, kRowBytes);
  if (kTwoOutputs) _tile_stored(1, out + p.out_block_stride, kRowBytes);
  if (kTwoPixels) {
    float* const next = out + kTilePixels * kTileOutputs;
    _tile_stored(2, next, kRowBytes);
    if (kTwoOutputs) _tile_stored(3, next + p.out_block_stride, kRowBytes);
  }
}

template <bool kTwoOutputs>
RT_BF16_TILES void MultiplyAll(const Bf16TileProduct& p) {
  int64_t pixel = 0;
  for (; pixel + kTilePixels < p.pixels; pixel += 2 * kTilePixels) {
    MultiplyGroup<true, kTwoOutputs>(p, pixel);
  }
  if (pixel < p.pixels) MultiplyGroup<false, kTwoOutputs>(p, pixel);
}

// Tiles 0 to 3 are sums of rows (0 or 1) x columns (0 or 1); 4 and 5 rows; 6 and 7 columns.
template <bool kTwoRows, bool kTwoColumns>
RT_BF16_TILES void MultiplyGradient(const Bf16TileGradient& p) {
  float* const sums = p.sums;
  float* const below = sums + p.sums_row_stride;
  const int64_t right = p.sums_column_stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (p.accumulate) {
    _tile_loadd(0, sums, kRowBytes);
    if (kTwoColumns) _tile_loadd(1, sums + right, kRowBytes);
    if (kTwoRows) _tile_loadd(2, below, kRowBytes);
    if (kTwoRows && kTwoColumns) _tile_loadd(3, below + right, kRowBytes);
  }
  const int64_t row_bytes = p.row_stride * static_cast<int64_t>(sizeof(Bfloat16));
  for (int64_t group = 0; group < p.groups; ++group) {
    const Bfloat16* const rows = p.rows + group * kTileChannels;
    const Bfloat16* const columns = p.columns + group * kTileNumbers;
    _tile_loadd(6, columns, kRowBytes);
    _tile_loadd(4, rows, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (kTwoRows) {
      _tile_loadd(5, rows + p.rows_block_stride, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if (kTwoColumns) {
      _tile_loadd(7, columns + p.columns_block_stride, kRowBytes);
      _tile_dpbf16ps(1, 4, 7);
      if (kTwoRows) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, kRowBytes);
  if (kTwoColumns) _tile_stored(1, sums + right, kRowBytes);
  if (kTwoRows) _tile_stored(2, below, kRowBytes);
  if (kTwoRows && kTwoColumns) _tile_stored(3, below + right, kRowBytes);
}

// 16 pixels of 16 channels, in registers, by halving blocks (Eklundh 1972).
[[gnu::always_inline]] static inline void Transpose16(const Bfloat16* from, int64_t row_stride,
                                                      Bfloat16* to) {
  __m256i a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    a[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * kTileOutputs));
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {  // pairs of pixels
    b[2 * i] = _mm256_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // fours
    a[4 * i + 0] = _mm256_unpacklo_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 1] = _mm256_unpackhi_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 2] = _mm256_unpacklo_epi32(b[4 * i + 1], b[4 * i + 3]);
    a[4 * i + 3] = _mm256_unpackhi_epi32(b[4 * i + 1], b[4 * i + 3]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {  // eights: channels 0 .. 7 below, 8 .. 15 above
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      b[8 * i + 2 * j] = _mm256_unpacklo_epi64(a[8 * i + j], a[8 * i + j + 4]);
      b[8 * i + 2 * j + 1] = _mm256_unpackhi_epi64(a[8 * i + j], a[8 * i + j + 4]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const __m256i low = _mm256_permute2x128_si256(b[j], b[j + 8], 0x20);
    const __m256i high = _mm256_permute2x128_si256(b[j], b[j + 8], 0x31);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j * row_stride), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (j + 8) * row_stride), high);
  }
}

constexpr int kRowsAtOnce = 4;  // pixels that are finished together

// What is taken of the results while they are written.
struct TileTaken {
  PieceMoments moments;
  PieceSums sums;
};

template <int kRows>
[[gnu::always_inline]] inline void Finish(const Bf16TileRows& r, const float* from, Bfloat16* to,
                                          TileTaken* taken) {
  Vec v[kRows];
#pragma GCC unroll 4
  for (int row = 0; row < kRows; ++row) {
    v[row] = Load(from + row * kLanes);
    if (r.bias != nullptr) v[row] += Load(r.bias);
    if (r.add) v[row] += Load(to + row * kLanes);
    if (r.clamp) v[row] = Clamped(v[row], Broadcast(r.low), Broadcast(r.high));
  }
  RoundAndStore(v, to);
  if (r.sums.src != nullptr) taken->sums.Add(r.sums.affine, 0, r.sums.src + (to - r.to), v);
  if (r.mean == nullptr) return;
  taken->moments.Add(0, v);
  taken->moments.empty = false;
}

}  // namespace

RT_BF16_TILES void BeginBf16Tiles() { _tile_loadconfig(&kConfig); }

RT_BF16_TILES void EndBf16Tiles() { _tile_release(); }

void MultiplyBf16Tiles(const Bf16TileProduct& product) {
  if (product.out_blocks == 2) return MultiplyAll<true>(product);
  MultiplyAll<false>(product);
}

void MultiplyBf16TileGradient(const Bf16TileGradient& p) {
  if (p.row_blocks == 2 && p.column_blocks == 2) return MultiplyGradient<true, true>(p);
  if (p.row_blocks == 2) return MultiplyGradient<true, false>(p);
  if (p.column_blocks == 2) return MultiplyGradient<false, true>(p);
  MultiplyGradient<false, false>(p);
}

void TransposeTilePixels(const Bfloat16* from, int64_t pixels, int64_t row_stride, Bfloat16* to) {
  for (int64_t pixel = 0; pixel < pixels; pixel += kTilePixels) {
    Transpose16(from + pixel * kTileOutputs, row_stride, to + pixel);
  }
}

void PackTileWeights(const Bf16TileWeights& w) {
  const __m512i order = PairIndex();
  const auto there = static_cast<__mmask16>((1U << w.outputs) - 1);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(w.k_stride)));
  const auto channel = [&](int64_t c) {
    const __mmask16 mask = c < w.channels ? there : 0;
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, at, w.weight + c * w.c_stride,
                                    sizeof(float));
  };
  for (int64_t c = 0; c < kTileChannels; c += 2) {
    const auto low = reinterpret_cast<Vec>(channel(c)),
               high = reinterpret_cast<Vec>(channel(c + 1));
    _mm512_storeu_si512(w.to + c * kTileOutputs, Interleaved(order, RoundTwo(low, high)));
  }
}

void AddTileSums(const Bf16TileSums& s) {
  constexpr int64_t kTile = kTileOutputs * kTileOutputs;
  for (int64_t tap = 0; tap < s.tap_count; ++tap) {
    float tile[kTileOutputs][kTileOutputs];
    for (int64_t row = 0; row < kTileOutputs; ++row) {
      const float* const from = s.sums + tap * kTile + row * kTileOutputs;
      Vec sum = Load(from);
      for (int64_t slot = 1; slot < s.slots; ++slot) sum += Load(from + slot * s.slot_stride);
      Store(tile[row], sum);
    }
    for (int64_t k = 0; k < s.outputs; ++k) {
      float* const to = s.weight + k * s.k_stride + tap;
      for (int64_t c = 0; c < s.channels; ++c) {
        to[c * s.tap_count] = s.rows_are_outputs ? tile[k][c] : tile[c][k];
      }
    }
  }
}

void FinishTileRows(const Bf16TileRows& r) {
  static_assert(kTileOutputs == kLanes);
  TileTaken taken;
  const bool adjacent = r.to_pixel_stride == kLanes;
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* from = r.from + row * r.from_row_stride;
    Bfloat16* to = r.to + row * r.to_row_stride;
    int64_t x = 0;
    for (; adjacent && x + kRowsAtOnce <= r.columns; x += kRowsAtOnce) {
      Finish<kRowsAtOnce>(r, from + x * kLanes, to + x * kLanes, &taken);
    }
    for (; x < r.columns; ++x) {
      Finish<1>(r, from + x * kLanes, to + x * r.to_pixel_stride, &taken);
    }
  }
  if (r.mean != nullptr) taken.moments.Write(1, r.rows * r.columns, r.mean, r.m2);
  if (r.sums.src != nullptr) taken.sums.Write(1, r.sums.g, r.sums.gx);
}

#else

void PackTileWeights(const Bf16TileWeights&) { __builtin_trap(); }
void AddTileSums(const Bf16TileSums&) { __builtin_trap(); }
void FinishTileRows(const Bf16TileRows&) { __builtin_trap(); }
void MultiplyBf16TileGradient(const Bf16TileGradient&) { __builtin_trap(); }
void TransposeTilePixels(const Bfloat16*, int64_t, int64_t, Bfloat16*) { __builtin_trap(); }
void BeginBf16Tiles() { __builtin_trap(); }
void EndBf16Tiles() { __builtin_trap(); }
void MultiplyBf16Tiles(const Bf16TileProduct&) { __builtin_trap(); }

#endif

void PackTilePixels(const Bfloat16* first, const Bfloat16* second, int64_t step, int64_t pixels,
                    Bfloat16* to) {
  constexpr int64_t kHalf = kTileChannels / 2;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, to += kTileChannels) {
    __builtin_memcpy(to, first + pixel * step, kHalf * sizeof(Bfloat16));
    if (second != nullptr) {
      __builtin_memcpy(to + kHalf, second + pixel * step, kHalf * sizeof(Bfloat16));
    } else {
      __builtin_memset(to + kHalf, 0, kHalf * sizeof(Bfloat16));
    }
  }
}

void CopyTilePixels(const Bfloat16* from, int64_t step, int64_t pixels, Bfloat16* to) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    __builtin_memcpy(to + pixel * kTileOutputs, from + pixel * step,
                     kTileOutputs * sizeof(Bfloat16));
  }
}

void ZeroTilePixels(int64_t pixels, Bfloat16* to) {
  __builtin_memset(to, 0, pixels * kTileChannels * sizeof(Bfloat16));
}

}  // namespace ringtail::RT_KERNEL_ISA
