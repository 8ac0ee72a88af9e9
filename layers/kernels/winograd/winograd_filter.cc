#include "layers/kernels/winograd/winograd_filter.h"

#include "core/kernels/vec.h"
#include "layers/kernels/winograd/winograd_matrices.h"
#include "layers/kernels/winograd/winograd_slices.h"
#include "layers/kernels/winograd/winograd_strided_matrices.h"
#include "layers/kernels/winograd/winograd_taps.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

void StoreTaps(const WinogradFilters& filters, const Vec* taps, float* weight) {
  for (int i = 0; i < kFilterTaps; ++i) {
    Vec rows[kLanes];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) rows[l] = taps[i * kLanes + l];
    TransposeRows(rows);
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      Store(weight + l * filters.lane_stride + i * kLanes, rows[l]);
    }
  }
}

// Matrices is a Winograd<m> or WinogradStrided; slice (i, j) lies at place(i, j).
template <typename Matrices, typename Place>
void Forward(const WinogradFilters& filters, const float* weight, float* u, int64_t u_stride,
             Place place) {
  constexpr int kSide = Matrices::Filter::kOut;
  Vec taps[kFilterTaps * kLanes];
  for (int64_t first = 0; first < filters.channels; first += kLanes) {
    LoadTaps(filters, weight + first * filters.channel_stride, taps);
    for (int c = 0; c < kLanes; ++c) {
      Vec out[kSide * kSide];
      TransformFilter<typename Matrices::Filter>(filters, taps + c * kFilterTaps, out);
      float* dst = u + (first + c) * u_stride;
#pragma GCC unroll 9
      for (int i = 0; i < kSide; ++i) {
#pragma GCC unroll 9
        for (int j = 0; j < kSide; ++j) Store(dst + place(i, j), out[i * kSide + j]);
      }
    }
  }
}

template <typename Matrices, typename Place>
void Gradient(const WinogradFilters& filters, const float* du, int64_t u_stride, Place place,
              float* diff_weight) {
  constexpr int kSide = Matrices::Filter::kOut;
  Vec taps[kFilterTaps * kLanes];
  for (int64_t first = 0; first < filters.channels; first += kLanes) {
    for (int c = 0; c < kLanes; ++c) {
      const float* src = du + (first + c) * u_stride;
      Vec in[kSide * kSide];
#pragma GCC unroll 9
      for (int i = 0; i < kSide; ++i) {
#pragma GCC unroll 9
        for (int j = 0; j < kSide; ++j) in[i * kSide + j] = Load(src + place(i, j));
      }
      Transform2d<typename Matrices::FilterGradient>(in, taps + c * kFilterTaps);
    }
    StoreTaps(filters, taps, diff_weight + first * filters.channel_stride);
  }
}

template <int kTile>
using Dense = DenseSlices<Winograd<kTile>::kPoints>;

}  // namespace

void WinogradFilter(int tile, const WinogradFilters& filters, const float* weight, float* u,
                    int64_t u_stride, int64_t slice_stride) {
  if (tile == 4) {
    Forward<Winograd<4>>(filters, weight, u, u_stride, Dense<4>{slice_stride});
  } else {
    Forward<Winograd<2>>(filters, weight, u, u_stride, Dense<2>{slice_stride});
  }
}

void WinogradFilterGradient(int tile, const WinogradFilters& filters, const float* du,
                            int64_t u_stride, int64_t slice_stride, float* diff_weight) {
  if (tile == 4) {
    Gradient<Winograd<4>>(filters, du, u_stride, Dense<4>{slice_stride}, diff_weight);
  } else {
    Gradient<Winograd<2>>(filters, du, u_stride, Dense<2>{slice_stride}, diff_weight);
  }
}

void WinogradStridedFilter(const WinogradFilters& filters, const float* weight, float* u,
                           int64_t u_stride, int64_t slice_stride, int64_t phase_stride) {
  Forward<WinogradStrided>(filters, weight, u, u_stride, PhasedSlices{slice_stride, phase_stride});
}

void WinogradStridedFilterGradient(const WinogradFilters& filters, const float* du,
                                   int64_t u_stride, int64_t slice_stride, int64_t phase_stride,
                                   float* diff_weight) {
  Gradient<WinogradStrided>(filters, du, u_stride, PhasedSlices{slice_stride, phase_stride},
                            diff_weight);
}

}  // namespace ringtail::RT_KERNEL_ISA
