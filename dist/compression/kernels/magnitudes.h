// Which elements reach a magnitude (dist/compression/codecs/magnitude.h), sixteen at a
// time. Magnitudes have no sign bit: as signed numbers, which vectors compare on every machine,
// they have the same order. See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_MAGNITUDES_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_MAGNITUDES_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// Number of elements with at least this magnitude. n < 2^31.
RT_DECLARE_KERNEL(int64_t CountReaching(const float* x, int64_t n, int32_t magnitude))
// Their places, ascending; `places` has the size that CountReaching returns.
RT_DECLARE_KERNEL(void FindReaching(const float* x, int64_t n, int32_t magnitude, int32_t* places))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_MAGNITUDES_H_
