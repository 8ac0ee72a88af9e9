#include "layers/kernels/bf16/bf16_tiles.h"

#include "layers/kernels/clamp.h"
#include "layers/kernels/vec_bfloat16.h"

#ifdef __AVX512F__
#include <immintrin.h>
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
  for (int64_t block = 0; block < p.channel_blocks; ++block) {
    const Bfloat16* const in = p.in + block * p.in_block_stride + pixel * kTileChannels;
    for (int64_t tap = 0; tap < p.tap_count; ++tap, weight += kTileNumbers) {
      const Bfloat16* const pixels = in + p.taps[tap];
      _tile_loadd(6, weight, kRowBytes);
      _tile_loadd(4, pixels, kRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      if (kTwoPixels) {
        _tile_loadd(5, pixels + kTilePixels * kTileChannels, kRowBytes);
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

}  // namespace

RT_BF16_TILES void BeginBf16Tiles() {
  _tile_loadconfig(&kConfig);
}

RT_BF16_TILES void EndBf16Tiles() { _tile_release(); }

void MultiplyBf16Tiles(const Bf16TileProduct& product) {
  if (product.out_blocks == 2) return MultiplyAll<true>(product);
  MultiplyAll<false>(product);
}

#else

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

void ZeroTilePixels(int64_t pixels, Bfloat16* to) {
  __builtin_memset(to, 0, pixels * kTileChannels * sizeof(Bfloat16));
}

void PackTileWeights(const Bf16TileWeights& w) {
  for (int64_t c = 0; c < kTileChannels; ++c) {
    Bfloat16* const to = w.to + c / 2 * (2 * kTileOutputs) + c % 2;
    const float* const from = w.weight + c * w.c_stride;
    const int64_t outputs = c < w.channels ? w.outputs : 0;
    for (int64_t k = 0; k < outputs; ++k) to[2 * k] = Narrow(from[k * w.k_stride]);
    for (int64_t k = outputs; k < kTileOutputs; ++k) to[2 * k] = {};
  }
}

void FinishTileRows(const Bf16TileRows& r) {
  static_assert(kTileOutputs % kLanes == 0);
  for (int64_t row = 0; row < r.rows; ++row) {
    const float* from = r.from + row * r.from_row_stride;
    Bfloat16* to = r.to + row * r.to_row_stride;
    for (int64_t x = 0; x < r.columns; ++x, from += kTileOutputs, to += r.to_pixel_stride) {
      for (int64_t lane = 0; lane < kTileOutputs; lane += kLanes) {
        Vec v = Load(from + lane);
        if (r.bias != nullptr) v += Load(r.bias + lane);
        if (r.add) v += Load(to + lane);
        if (r.clamp) v = Clamped(v, Broadcast(r.low), Broadcast(r.high));
        Store(to + lane, v);
      }
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
