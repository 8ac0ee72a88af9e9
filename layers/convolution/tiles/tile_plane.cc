#include "layers/convolution/tiles/tile_plane.h"

#include <algorithm>

#include "core/round.h"

namespace ringtail {
namespace {

// Along one dimension, the taps of the results of one phase: result i reads input row i + row.
struct Tap1d {
  int64_t k, phase, row;
};
struct Results1d {
  int64_t first, count;
  std::vector<Tap1d> taps;
};
struct Plane1d {
  int64_t phases, stride, padding;  // of the input
  int64_t more;                     // rows beyond those of the results
  int64_t result_stride;
  std::vector<Results1d> results;
};

Plane1d Forward1d(int64_t kernel, int64_t stride, int64_t padding, int64_t out) {
  Plane1d plane{.phases = std::min(kernel, stride),
                .stride = stride,
                .padding = padding,
                .more = (kernel - 1) / stride,
                .result_stride = 1,
                .results = {{.first = 0, .count = out, .taps = {}}}};
  for (int64_t k = 0; k < kernel; ++k) {
    plane.results[0].taps.push_back({.k = k, .phase = k % stride, .row = k / stride});
  }
  return plane;
}

// Pixel i stride + phase of the input is read as row i + base - m of dst, where phase + padding =
// base stride + (k mod stride) and k = k mod stride + m stride.
Plane1d Backward1d(int64_t kernel, int64_t stride, int64_t padding, int64_t in) {
  Plane1d plane{
      .phases = 1, .stride = 1, .padding = 0, .more = 0, .result_stride = stride, .results = {}};
  int64_t lowest = 0, highest = 0;
  for (int64_t phase = 0; phase < std::min(stride, in); ++phase) {
    Results1d results{.first = phase, .count = CeilDivide(in - phase, stride), .taps = {}};
    const int64_t base = (phase + padding) / stride;
    for (int64_t k = (phase + padding) % stride; k < kernel; k += stride) {
      const int64_t row = base - k / stride;
      results.taps.push_back({.k = k, .phase = 0, .row = row});
      lowest = std::min(lowest, row);
      highest = std::max(highest, row);
    }
    plane.results.push_back(std::move(results));
  }
  plane.padding = -lowest;
  plane.more = highest - lowest;
  for (Results1d& results : plane.results) {
    for (Tap1d& tap : results.taps) tap.row -= lowest;
  }
  return plane;
}

TilePlane Join(const Plane1d& y, const Plane1d& x) {
  TilePlane plane{.phases_y = y.phases,
                  .phases_x = x.phases,
                  .stride_y = y.stride,
                  .stride_x = x.stride,
                  .top = y.padding,
                  .left = x.padding,
                  .columns = 0,
                  .more_rows = y.more,
                  .result_stride_y = y.result_stride,
                  .result_stride_x = x.result_stride,
                  .result_rows = 0,
                  .results = {}};
  for (const Results1d& down : y.results) {
    plane.result_rows = std::max(plane.result_rows, down.count);
    for (const Results1d& across : x.results) {
      plane.columns = std::max(plane.columns, across.count + x.more);
      TileResults results{.first_y = down.first,
                          .first_x = across.first,
                          .rows = down.count,
                          .columns = across.count,
                          .taps = {}};
      for (const Tap1d& ty : down.taps) {
        for (const Tap1d& tx : across.taps) {
          results.taps.push_back({.ky = ty.k,
                                  .kx = tx.k,
                                  .phase = ty.phase * x.phases + tx.phase,
                                  .row = ty.row,
                                  .column = tx.row});
        }
      }
      plane.results.push_back(std::move(results));
    }
  }
  return plane;
}

}  // namespace

TileRow RowOf(const TilePlane& plane, const BlobDesc& in, int64_t phase, int64_t row) {
  TileRow place{.y = row * plane.stride_y + phase / plane.phases_x - plane.top};
  if (place.y < 0 || place.y >= in.H) return place;
  // Column c is pixel c step + x0.
  const int64_t step = plane.stride_x, x0 = phase % plane.phases_x - plane.left;
  place.begin = std::min(x0 < 0 ? CeilDivide(-x0, step) : 0, plane.columns);
  place.end =
      x0 < in.W ? std::clamp(CeilDivide(in.W - x0, step), place.begin, plane.columns) : place.begin;
  place.x = x0 + place.begin * step;
  return place;
}

TilePlane ForwardPlane(const Window& w, const BlobDesc& dst) {
  return Join(Forward1d(w.KH, w.SH, w.PT, dst.H), Forward1d(w.KW, w.SW, w.PL, dst.W));
}

TilePlane BackwardPlane(const Window& w, const BlobDesc& src) {
  return Join(Backward1d(w.KH, w.SH, w.PT, src.H), Backward1d(w.KW, w.SW, w.PL, src.W));
}

}  // namespace ringtail
