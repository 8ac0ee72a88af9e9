#include "layers/kernels/winograd_filter.h"

#include "layers/kernels/winograd_matrices.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int kTaps = 9;

// dst[i][j] = Transform over columns, then rows, of src[i][j].
template <typename Transform>
void Transform2d(const Vec* src, Vec* dst) {
  constexpr int kIn = Transform::kIn, kOut = Transform::kOut;
  Vec columns[kOut][kIn];
  for (int j = 0; j < kIn; ++j) {
    Vec in[kIn], out[kOut];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) in[i] = src[i * kIn + j];
    Transform::Apply(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < kOut; ++i) columns[i][j] = out[i];
  }
  for (int i = 0; i < kOut; ++i) Transform::Apply(columns[i], dst + i * kOut);
}

template <int kTile>
void Forward(const WinogradFilters& filters, const float* weight, float* u, int64_t u_stride,
             int64_t slice_stride) {
  constexpr int kSlices = Winograd<kTile>::kPoints * Winograd<kTile>::kPoints;
  float taps[kTaps * kLanes] = {};
  for (int64_t c = 0; c < filters.channels; ++c) {
    const float* channel = weight + c * filters.channel_stride;
    for (int64_t l = 0; l < filters.lanes; ++l) {
      const float* filter = channel + l * filters.lane_stride;
      for (int r = 0; r < kTaps; ++r) {
        taps[r * kLanes + l] = filter[filters.turned ? kTaps - 1 - r : r];
      }
    }
    Vec in[kTaps], out[kSlices];
    for (int r = 0; r < kTaps; ++r) in[r] = Load(taps + r * kLanes);
    Transform2d<typename Winograd<kTile>::Filter>(in, out);
    for (int s = 0; s < kSlices; ++s) Store(u + s * slice_stride + c * u_stride, out[s]);
  }
}

template <int kTile>
void Gradient(const WinogradFilters& filters, const float* du, int64_t u_stride,
              int64_t slice_stride, float* diff_weight) {
  constexpr int kSlices = Winograd<kTile>::kPoints * Winograd<kTile>::kPoints;
  for (int64_t c = 0; c < filters.channels; ++c) {
    Vec in[kSlices], out[kTaps];
    for (int s = 0; s < kSlices; ++s) in[s] = Load(du + s * slice_stride + c * u_stride);
    Transform2d<typename Winograd<kTile>::FilterGradient>(in, out);
    float taps[kTaps * kLanes];
    for (int r = 0; r < kTaps; ++r) Store(taps + r * kLanes, out[r]);
    float* channel = diff_weight + c * filters.channel_stride;
    for (int64_t l = 0; l < filters.lanes; ++l) {
      float* filter = channel + l * filters.lane_stride;
      for (int r = 0; r < kTaps; ++r) filter[r] = taps[r * kLanes + l];
    }
  }
}

}  // namespace

void WinogradFilter(int tile, const WinogradFilters& filters, const float* weight, float* u,
                    int64_t u_stride, int64_t slice_stride) {
  if (tile == 4) return Forward<4>(filters, weight, u, u_stride, slice_stride);
  Forward<2>(filters, weight, u, u_stride, slice_stride);
}

void WinogradFilterGradient(int tile, const WinogradFilters& filters, const float* du,
                            int64_t u_stride, int64_t slice_stride, float* diff_weight) {
  if (tile == 4) return Gradient<4>(filters, du, u_stride, slice_stride, diff_weight);
  Gradient<2>(filters, du, u_stride, slice_stride, diff_weight);
}

}  // namespace ringtail::RT_KERNEL_ISA
