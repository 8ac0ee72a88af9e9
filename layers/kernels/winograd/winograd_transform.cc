#include "layers/kernels/winograd/winograd_transform.h"

#include "layers/kernels/clamp.h"
#include "layers/kernels/integers.h"
#include "layers/kernels/vec_affine.h"
#include "layers/kernels/vec_bfloat16.h"
#include "layers/kernels/winograd/winograd_matrices.h"
#include "layers/kernels/winograd/winograd_slices.h"
#include "layers/kernels/winograd/winograd_strided_matrices.h"
#include "layers/kernels/winograd/winograd_strips.h"

// Rows of tiles are worked on in strips: every column of a strip is transformed once, although it
// belongs to up to two tiles, into a buffer in the first-level cache; then every tile's rows.
namespace ringtail::RT_KERNEL_ISA {
namespace {

// Tiles of kTile x kTile pixels in a strip: the buffer must fit the first-level cache.
constexpr int StripTiles(int tile) { return tile == 8 ? 4 : 8; }

// Into slices, which lie where `place` says (winograd_slices.h), of pixels as `map` gives them.
// Transform reads overlapping tiles (an Input) or disjoint ones (a Gradient), whose pixels are then
// summed, too. Place comes by value, so that the compiler sees that no store can change it.
template <int kTile, typename Transform, typename Element, typename Map, typename Place>
void PlaneToSlices(const WinogradGrid& grid, const Element* plane, const Map& map, int64_t first,
                   int64_t last, float* slices, Place place, double* sums) {
  constexpr int kOut = Transform::kOut, kOverlap = Transform::kIn - kTile;
  constexpr bool kSums = kOverlap == 0;
  constexpr int kStripTiles = StripTiles(kTile);
  Vec columns[kOut][kStripTiles * kTile + kOverlap];
  ForEachStrip<kStripTiles>(
      grid, first, last, [&](int64_t sample, int64_t ty, int64_t tx, int64_t count, int64_t done) {
        const Vec sum = TransformColumns<kTile, Transform>(
            grid, plane + sample * grid.sample_stride, map, ty, tx, count, columns);
        if constexpr (kSums) AddLanes(sum, sums);
        float* dst = slices + done * kLanes;
        for (int i = 0; i < kOut; ++i) {
          for (int64_t t = 0; t < count; ++t) {
            Vec out[kOut];
            Transform::Apply(&columns[i][t * kTile], out);
#pragma GCC unroll 9
            for (int j = 0; j < kOut; ++j) {
              Store(dst + place(i, j) + t * kLanes, out[j]);
            }
          }
        }
      });
}

template <int kTile, typename Transform, typename Map, typename Place>
void ToSlices(const WinogradGrid& grid, const float* plane, const Map& map, int64_t first,
              int64_t last, float* slices, Place place, double* sums) {
  if (grid.bf16) {
    const auto* bf16 = reinterpret_cast<const Bfloat16*>(plane);
    return PlaneToSlices<kTile, Transform>(grid, bf16, map, first, last, slices, place, sums);
  }
  PlaneToSlices<kTile, Transform>(grid, plane, map, first, last, slices, place, sums);
}

// The tiles that Transform gives are disjoint.
template <typename Transform, typename Element, typename Place>
void SlicesToPlane(const WinogradGrid& grid, const float* m, Place place, int64_t first,
                   int64_t last, const WinogradEpilogue& epilogue, Element* plane) {
  constexpr int kTile = Transform::kOut;
  constexpr bool kPadded = kTile == 8;  // only tiles of diff_src may begin outside the plane
  constexpr int kIn = Transform::kIn;
  const Vec bias = epilogue.bias != nullptr ? Load(epilogue.bias) : Vec{};
  const Vec low = Broadcast(epilogue.low), high = Broadcast(epilogue.high);
  ForEachStrip<StripTiles(kTile)>(
      grid, first, last, [&](int64_t sample, int64_t ty, int64_t tx, int64_t count, int64_t done) {
        const int64_t y0 = ty * kTile - grid.pad_top, x0 = tx * kTile - grid.pad_left;
        Element* image = plane + sample * grid.sample_stride;
        for (int64_t t = 0; t < count; ++t) {
          const float* src = m + (done + t) * kLanes;
          Vec columns[kTile][kIn];
#pragma GCC unroll 9
          for (int j = 0; j < kIn; ++j) {
            Vec in[kIn], out[kTile];
#pragma GCC unroll 9
            for (int i = 0; i < kIn; ++i) in[i] = Load(src + place(i, j));
            Transform::Apply(in, out);
#pragma GCC unroll 8
            for (int i = 0; i < kTile; ++i) columns[i][j] = out[i];
          }
          const int64_t rows = Min(kTile, grid.H - y0), x = x0 + t * kTile;
          const int64_t width = Min(kTile, grid.W - x);
          for (int64_t i = kPadded ? Max(0, -y0) : 0; i < rows; ++i) {
            Vec out[kTile];
            Transform::Apply(columns[i], out);
            Element* dst = image + ((y0 + i) * grid.W + x) * kLanes;
            for (int64_t j = kPadded ? Max(0, -x) : 0; j < width; ++j) {
              Store(dst + j * kLanes, Clamped(out[j] + bias, low, high));
            }
          }
        }
      });
}

template <typename Transform, typename Place>
void FromSlices(const WinogradGrid& grid, const float* m, Place place, int64_t first, int64_t last,
                const WinogradEpilogue& epilogue, float* plane) {
  if (grid.bf16) {
    auto* bf16 = reinterpret_cast<Bfloat16*>(plane);
    return SlicesToPlane<Transform>(grid, m, place, first, last, epilogue, bf16);
  }
  SlicesToPlane<Transform>(grid, m, place, first, last, epilogue, plane);
}

template <int kTile>
using Dense = DenseSlices<Winograd<kTile>::kPoints>;
using Strided = WinogradStrided;
using StridedDense = DenseSlices<Strided::kPoints>;

template <int kTile>
void Input(const WinogradGrid& grid, const float* plane, const ChannelAffine& affine, int64_t first,
           int64_t last, float* v, Dense<kTile> place) {
  using Transform = typename Winograd<kTile>::Input;
  if (affine.mean == nullptr) {
    ToSlices<kTile, Transform>(grid, plane, VecIdentity(), first, last, v, place, nullptr);
  } else {
    ToSlices<kTile, Transform>(grid, plane, VecAffine(affine), first, last, v, place, nullptr);
  }
}

}  // namespace

void WinogradInput(int tile, const WinogradGrid& grid, const float* plane,
                   const ChannelAffine& affine, int64_t first, int64_t last, float* v,
                   int64_t slice_stride) {
  if (tile == 4) return Input<4>(grid, plane, affine, first, last, v, {slice_stride});
  Input<2>(grid, plane, affine, first, last, v, {slice_stride});
}

void WinogradGradient(int tile, const WinogradGrid& grid, const float* plane, int64_t first,
                      int64_t last, float* z, int64_t slice_stride, double* sums) {
  if (tile == 4) {
    ToSlices<4, Winograd<4>::Gradient>(grid, plane, VecIdentity(), first, last, z,
                                       Dense<4>{slice_stride}, sums);
  } else {
    ToSlices<2, Winograd<2>::Gradient>(grid, plane, VecIdentity(), first, last, z,
                                       Dense<2>{slice_stride}, sums);
  }
}

void WinogradOutput(int tile, const WinogradGrid& grid, const float* m, int64_t slice_stride,
                    int64_t first, int64_t last, const WinogradEpilogue& epilogue, float* plane) {
  if (tile == 4) {
    FromSlices<Winograd<4>::Output>(grid, m, Dense<4>{slice_stride}, first, last, epilogue, plane);
  } else {
    FromSlices<Winograd<2>::Output>(grid, m, Dense<2>{slice_stride}, first, last, epilogue, plane);
  }
}

void WinogradStridedInput(const WinogradGrid& grid, const float* plane, int64_t first, int64_t last,
                          float* v, int64_t slice_stride, int64_t phase_stride) {
  ToSlices<8, Strided::Input>(grid, plane, VecIdentity(), first, last, v,
                              PhasedSlices{slice_stride, phase_stride}, nullptr);
}

void WinogradStridedOutput(const WinogradGrid& grid, const float* m, int64_t slice_stride,
                           int64_t first, int64_t last, const WinogradEpilogue& epilogue,
                           float* plane) {
  FromSlices<Strided::Output>(grid, m, StridedDense{slice_stride}, first, last, epilogue, plane);
}

void WinogradStridedGradient(const WinogradGrid& grid, const float* plane, int64_t first,
                             int64_t last, float* z, int64_t slice_stride, double* sums) {
  ToSlices<4, Strided::Gradient>(grid, plane, VecIdentity(), first, last, z,
                                 StridedDense{slice_stride}, sums);
}

void WinogradStridedDiffDst(const WinogradGrid& grid, const float* plane, int64_t first,
                            int64_t last, float* v, int64_t slice_stride) {
  ToSlices<4, Strided::DiffDst>(grid, plane, VecIdentity(), first, last, v,
                                StridedDense{slice_stride}, nullptr);
}

void WinogradStridedDiffSrc(const WinogradGrid& grid, const float* m, int64_t slice_stride,
                            int64_t phase_stride, int64_t first, int64_t last,
                            const WinogradEpilogue& epilogue, float* plane) {
  FromSlices<Strided::DiffSrc>(grid, m, PhasedSlices{slice_stride, phase_stride}, first, last,
                               epilogue, plane);
}

}  // namespace ringtail::RT_KERNEL_ISA
