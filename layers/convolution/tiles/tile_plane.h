// TilePlane: the input of a convolution as tiles read it, so that every tap of a filter finds the
// pixels of a whole tile in a row.
//
//   stride 1, 3x3, padding 1         row -1    .  .  .  .  .  .
//   W = 4: rows of Wp = 6 pixels,    row  0    .  a  b  c  d  .      a tap is a distance:
//   one after another, zeros at      row  1    .  e  f  g  h  .      (ky, kx) is ky Wp + kx pixels on
//   the borders                      row  2    ...
//
// Tiles of 16 pixels run across the ends of rows: the two results of each row that lie there are of no
// use, and are not written. With strides there is a plane for each phase (row and column modulo the
// stride), and a tap is a distance within the plane of its phase.
//
// A gradient of the input is the same with another list of taps, for each phase of the pixels that it
// writes: diff_src[y] = sum of diff_dst[(y + P - ky) / S] w[ky], over the ky for which that is whole.
// Source: as a sum over shifted planes in Krizhevsky et al. 2012's cuda-convnet; the phases in Dumoulin
// & Visin 2016, "A guide to convolution arithmetic for deep learning", section 4.
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PLANE_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PLANE_H_

#include <cstdint>
#include <vector>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

// One tap: which weight, and where its pixels are for result 0 of a strip.
struct TilePlaneTap {
  int64_t ky = 0, kx = 0;
  int64_t phase = 0;  // of the input
  int64_t row = 0, column = 0;
};

// Results of one phase: pixels (first_y + row stride_y, first_x + column stride_x) of the output.
struct TileResults {
  int64_t first_y = 0, first_x = 0;
  int64_t rows = 0, columns = 0;  // of a whole image
  std::vector<TilePlaneTap> taps;
};

struct TilePlane {
  // The input: pixel (row stride_y + phase_y - top, column stride_x + phase_x - left) of the blob.
  int64_t phases_y = 1, phases_x = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t top = 0, left = 0;
  int64_t columns = 0;    // Wp, of a row in each phase
  int64_t more_rows = 0;  // rows of input for r rows of results: r + more_rows
  // The output.
  int64_t result_stride_y = 1, result_stride_x = 1;
  int64_t result_rows = 0;  // the most of a phase
  std::vector<TileResults> results;

  int64_t phases() const { return phases_y * phases_x; }
  // Pixels of one phase, for `rows` rows of results.
  int64_t Pixels(int64_t rows) const { return (rows + more_rows) * columns; }
};

// A row of a phase: pixels [begin, end) are pixels x, x + stride_x, ... of row y of the blob, the
// others zeros. None, if the row lies outside.
struct TileRow {
  int64_t y = 0, x = 0;
  int64_t begin = 0, end = 0;
};
TileRow RowOf(const TilePlane& plane, const BlobDesc& in, int64_t phase, int64_t row);

// `window` over an input of H x W pixels, results of OH x OW.
TilePlane ForwardPlane(const Window& window, const BlobDesc& dst);
TilePlane BackwardPlane(const Window& window, const BlobDesc& src);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PLANE_H_
