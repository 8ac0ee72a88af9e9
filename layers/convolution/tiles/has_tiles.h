// Whether this machine multiplies bfloat16 by tiles (AMX), and this process may: Linux grants the 8
// KiB of a thread's tiles on request, for all threads of the process (arch_prctl,
// ARCH_REQ_XCOMP_PERM). The request is made by the first call. False, too, where a test or
// DNNL_MAX_CPU_ISA caps the instruction set below AVX-512.
// Thread-safety: any thread.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_HAS_TILES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_HAS_TILES_H_

namespace ringtail {

bool HasBf16Tiles();

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_HAS_TILES_H_
