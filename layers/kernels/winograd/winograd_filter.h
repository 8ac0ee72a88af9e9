// Winograd's transforms of 3x3 filters and of their gradients; see winograd_transform.h, for
// strided convolutions winograd_strided_matrices.h. Filters lie plain, as parameters do:
// (OC, IC, 3, 3). As many as a register has lanes go side by side; what they are is up to the
// strides: output channels for forward, input channels for backward-data.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_FILTER_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_FILTER_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct WinogradFilters {
  // Floats from one 3x3 to the next: one of the two is 9.
  int64_t lane_stride, channel_stride;
  int64_t channels;  // over which the convolution sums; a multiple of the lanes
  bool flipped;      // in both directions
};

// G g G^T: slice s of channel c goes to u + s * slice_stride + c * u_stride.
RT_DECLARE_KERNEL(void WinogradFilter(int tile, const WinogradFilters& filters, const float* weight,
                                      float* u, int64_t u_stride, int64_t slice_stride))
// G^T du G, to the plain filters. Requires channel_stride = 9; not flipped.
RT_DECLARE_KERNEL(void WinogradFilterGradient(int tile, const WinogradFilters& filters,
                                              const float* du, int64_t u_stride,
                                              int64_t slice_stride, float* diff_weight))
// The same for stride 2, phase by phase (winograd_slices.h).
RT_DECLARE_KERNEL(void WinogradStridedFilter(const WinogradFilters& filters, const float* weight,
                                             float* u, int64_t u_stride, int64_t slice_stride,
                                             int64_t phase_stride))
RT_DECLARE_KERNEL(void WinogradStridedFilterGradient(const WinogradFilters& filters,
                                                     const float* du, int64_t u_stride,
                                                     int64_t slice_stride, int64_t phase_stride,
                                                     float* diff_weight))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_FILTER_H_
