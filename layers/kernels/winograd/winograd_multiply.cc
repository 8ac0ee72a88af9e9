#include "layers/kernels/winograd/winograd_multiply.h"

#include "core/kernels/vec.h"

// Each micro-kernel keeps a block of the result in registers: kRows x kVecs accumulators, with
// kVecs registers for one operand, while the other comes as broadcasts from memory. 12 accumulators
// of 16 registers (AVX2) or 24 of 32 (AVX-512) hide the latency of the multiply-adds.
namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kPanel = 2;                                // blocks of k per panel
constexpr int kRows = kRegisters == 32 ? 12 : 6;         // tiles at a time
constexpr int kGradientVecs = 3;                         // blocks of k at a time
constexpr int kGradientRows = kRegisters == 32 ? 8 : 4;  // channels at a time

template <int kTiles, int kVecs>
void Micro(const WinogradProduct& p, int64_t first_tile) {
  Vec sum[kTiles][kVecs] = {};
  const float* v = p.v + first_tile * kLanes;
  const float* u = p.u;
  for (int64_t block = 0; block < p.channel_blocks; ++block) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      Vec filter[kVecs];
#pragma GCC unroll 2
      for (int x = 0; x < kVecs; ++x) filter[x] = Load(u + x * kLanes);
      u += kVecs * kLanes;
#pragma GCC unroll 12
      for (int t = 0; t < kTiles; ++t) {
        const Vec pixel = Broadcast(v[t * kLanes + lane]);
#pragma GCC unroll 2
        for (int x = 0; x < kVecs; ++x) sum[t][x] += pixel * filter[x];
      }
    }
    v += p.v_block_stride;
  }
  float* m = p.m + first_tile * kLanes;
#pragma GCC unroll 12
  for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) Store(m + x * p.m_block_stride + t * kLanes, sum[t][x]);
  }
}

// The last tiles, fewer than kRows.
template <int kTiles, int kVecs>
void Rest(const WinogradProduct& p, int64_t first_tile, int64_t tiles) {
  if (tiles == kTiles) return Micro<kTiles, kVecs>(p, first_tile);
  if constexpr (kTiles > 1) Rest<kTiles - 1, kVecs>(p, first_tile, tiles);
}

template <int kVecs>
void Multiply(const WinogradProduct& p) {
  int64_t t = 0;
  for (; t + kRows <= p.tiles; t += kRows) Micro<kRows, kVecs>(p, t);
  if (t < p.tiles) Rest<kRows - 1, kVecs>(p, t, p.tiles - t);
}

template <int kVecs>
void MicroGradient(const WinogradGradientProduct& p, int row, int64_t k_block) {
  const float* v = p.v + row;
  const float* z = p.z + k_block * p.z_block_stride;
  float* du = p.du + row * p.du_stride + k_block * kLanes;
  Vec sum[kGradientRows][kVecs] = {};
  for (int64_t t = 0; t < p.tiles; ++t) {
    Vec gradient[kVecs];
#pragma GCC unroll 3
    for (int x = 0; x < kVecs; ++x) gradient[x] = Load(z + x * p.z_block_stride + t * kLanes);
#pragma GCC unroll 8
    for (int c = 0; c < kGradientRows; ++c) {
      const Vec pixel = Broadcast(v[t * kLanes + c]);
#pragma GCC unroll 3
      for (int x = 0; x < kVecs; ++x) sum[c][x] += pixel * gradient[x];
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kGradientRows; ++c) {
#pragma GCC unroll 3
    for (int x = 0; x < kVecs; ++x) {
      float* to = du + c * p.du_stride + x * kLanes;
      Store(to, p.accumulate ? Load(to) + sum[c][x] : sum[c][x]);
    }
  }
}

}  // namespace

void WinogradMultiply(const WinogradProduct& product) {
  if (product.panel_blocks == kPanel) return Multiply<kPanel>(product);
  Multiply<1>(product);
}

void WinogradMultiplyGradient(const WinogradGradientProduct& p) {
  for (int64_t k = 0; k < p.k_blocks;) {
    const int64_t left = p.k_blocks - k;
    const int vecs = left == 4 || left == 2 ? 2 : left == 1 ? 1 : kGradientVecs;
    for (int row = 0; row < kLanes; row += kGradientRows) {
      if (vecs == 3) MicroGradient<3>(p, row, k);
      if (vecs == 2) MicroGradient<2>(p, row, k);
      if (vecs == 1) MicroGradient<1>(p, row, k);
    }
    k += vecs;
  }
}

int64_t WinogradTileGroup() { return kRows; }
int64_t WinogradLanes() { return kLanes; }

}  // namespace ringtail::RT_KERNEL_ISA
