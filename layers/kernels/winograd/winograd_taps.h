// 3x3 filters as registers, for the transforms of winograd_filter.h. Only for layers/kernels/*.cc.
// (Transform2d is not made to be inlined: that would change which products and sums the compiler fuses,
// and so the last bits of f32.)
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TAPS_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TAPS_H_

#include <cstdint>

#include "core/kernels/vec.h"
#include "layers/kernels/winograd/winograd_filter.h"

namespace ringtail::RT_KERNEL_ISA {

constexpr int kFilterTaps = 9;

// dst[i][j] = Transform over columns, then rows, of src[i][j].
template <typename Transform>
static void Transform2d(const Vec* src, Vec* dst) {
  constexpr int kIn = Transform::kIn, kOut = Transform::kOut;
  Vec columns[kOut][kIn];
  for (int j = 0; j < kIn; ++j) {
    Vec in[kIn], out[kOut];
#pragma GCC unroll 9
    for (int i = 0; i < kIn; ++i) in[i] = src[i * kIn + j];
    Transform::Apply(in, out);
#pragma GCC unroll 9
    for (int i = 0; i < kOut; ++i) columns[i][j] = out[i];
  }
  for (int i = 0; i < kOut; ++i) Transform::Apply(columns[i], dst + i * kOut);
}

// The transform of one channel's taps, after they have been flipped if the filters are.
template <typename Transform>
[[gnu::always_inline]] static inline void TransformFilter(const WinogradFilters& filters,
                                                          const Vec* taps, Vec* out) {
  Vec in[kFilterTaps];
  for (int r = 0; r < kFilterTaps; ++r) in[r] = taps[filters.flipped ? kFilterTaps - 1 - r : r];
  Transform2d<Transform>(in, out);
}

// taps[c * 9 + r][lane] of kLanes channels.
[[maybe_unused]] static void LoadTaps(const WinogradFilters& filters, const float* weight,
                                      Vec* taps) {
  if (filters.channel_stride == kFilterTaps) {  // a lane's channels are adjacent
    for (int i = 0; i < kFilterTaps; ++i) {
      LoadTransposed(weight + i * kLanes, filters.lane_stride, taps + i * kLanes);
    }
    return;
  }
  float channel[(kFilterTaps + 2) *
                kLanes];  // a transposition reads more than 9 taps of the last lane
  for (int c = 0; c < kLanes; ++c) {
    for (int i = 0; i < kFilterTaps; ++i) {
      Store(channel + i * kLanes, Load(weight + c * filters.channel_stride + i * kLanes));
    }
    for (int r = 0; r < kFilterTaps; r += kLanes) {
      Vec rows[kLanes];
      LoadTransposed(channel + r, kFilterTaps, rows);
      for (int i = 0; i < kLanes && r + i < kFilterTaps; ++i)
        taps[c * kFilterTaps + r + i] = rows[i];
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TAPS_H_
