// Rows of tiles are transformed in strips, so that a column which belongs to two tiles is worked on
// once. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_

#include <cstdint>

#include "core/kernels/vec.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/vec_bfloat16.h"
#include "layers/kernels/winograd/winograd_transform.h"

namespace ringtail::RT_KERNEL_ISA {

// Calls work(sample, ty, tx, count, done) for the strips that tiles [first, last) consist of.
template <int kStripTiles, typename Work>
static void ForEachStrip(const WinogradGrid& grid, int64_t first, int64_t last, const Work& work) {
  int64_t tx = first % grid.tiles_x;
  int64_t ty = first / grid.tiles_x % grid.tiles_y;
  int64_t sample = first / grid.tiles_x / grid.tiles_y;
  for (int64_t t = first; t < last;) {
    const int64_t count = Min(Min(grid.tiles_x - tx, last - t), kStripTiles);
    work(sample, ty, tx, count, t - first);
    t += count;
    tx += count;
    if (tx < grid.tiles_x) continue;
    tx = 0;
    if (++ty < grid.tiles_y) continue;
    ty = 0;
    ++sample;
  }
}

[[maybe_unused]] static void AddLanes(Vec values, double* sums) {
  float lanes[kLanes];
  Store(lanes, values);
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) sums[l] += lanes[l];
}

// The columns of a strip of `count` tiles: columns[i][x] becomes element i of transformed column x of
// `image`, a sample's block of channels. Pixels outside are zeros, the others as `map` gives them.
// Transform reads overlapping tiles (an Input) or disjoint ones (a Gradient); returns the sum of the
// pixels of disjoint ones.
template <int kTile, typename Transform, int kColumns, typename Element, typename Map>
[[gnu::always_inline]] static inline Vec TransformColumns(const WinogradGrid& grid,
                                                          const Element* image, const Map& map,
                                                          int64_t ty, int64_t tx, int64_t count,
                                                          Vec (*columns)[kColumns]) {
  constexpr int kIn = Transform::kIn, kOut = Transform::kOut, kOverlap = kIn - kTile;
  const int64_t y0 = ty * kTile - grid.pad_top, x0 = tx * kTile - grid.pad_left;
  const int64_t width = count * kTile + kOverlap;
  Vec sum = {};
  for (int64_t x = 0; x < width; ++x) {
    Vec in[kIn], out[kOut];
    const bool inside = x0 + x >= 0 && x0 + x < grid.W;
#pragma GCC unroll 9
    for (int i = 0; i < kIn; ++i) {
      const int64_t y = y0 + i;
      in[i] = inside && y >= 0 && y < grid.H ? map(Load(image + (y * grid.W + x0 + x) * kLanes))
                                             : Vec{};
      if constexpr (kOverlap == 0) sum += in[i];
    }
    Transform::Apply(in, out);
#pragma GCC unroll 9
    for (int i = 0; i < kOut; ++i) columns[i][x] = out[i];
  }
  return sum;
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_
