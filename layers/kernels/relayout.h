// One block of channels of one sample, between adjacent planes and interleaved channels. `plane`
// pixels, `channels` <= `block`; block 8 or 16. Element:
// float or Bfloat16.
#ifndef RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_
#define RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

// dst[p * block + c] = c < channels ? src[c * plane + p] : 0
RT_DECLARE_KERNEL(template <typename Element>
                  void InterleaveChannels(const Element* src, int64_t plane, int64_t channels,
                                          int64_t block, Element* dst))
// dst[c * plane + p] = src[p * block + c] for c < channels
RT_DECLARE_KERNEL(template <typename Element>
                  void DeinterleaveChannels(const Element* src, int64_t plane, int64_t channels,
                                            int64_t block, Element* dst))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_RELAYOUT_H_
