// One block of channels of one sample, between adjacent planes and interleaved channels. `plane`
// pixels, `channels` <= `block`; block 8 or 16.
#ifndef RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_
#define RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// dst[p * block + c] = c < channels ? src[c * plane + p] : 0
RT_DECLARE_KERNEL(void InterleaveChannels(const float* src, int64_t plane, int64_t channels,
                                          int64_t block, float* dst))
// dst[c * plane + p] = src[p * block + c] for c < channels
RT_DECLARE_KERNEL(void DeinterleaveChannels(const float* src, int64_t plane, int64_t channels,
                                            int64_t block, float* dst))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_
