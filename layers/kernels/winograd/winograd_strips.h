// Rows of tiles are transformed in strips, so that a column which belongs to two tiles is worked on
// once. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_

#include <cstdint>

#include "layers/kernels/integers.h"
#include "layers/kernels/vec.h"
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

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIPS_H_
