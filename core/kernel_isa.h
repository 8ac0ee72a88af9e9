// Inner loops compiled once per instruction set from one source and chosen at run time, so that one
// binary runs on every node of a mixed cluster.
//
//   core/kernels/               operations that several folders share
//   layers/kernels/             operations that oneDNN lacks or does slowly
//   dist/compression/kernels/   gradients to few bits and back
//
// Each source NAME.cc in such a folder is compiled three times, with RT_KERNEL_ISA = baseline,
// avx2, avx512, inside `namespace ringtail::RT_KERNEL_ISA` (CMakeLists.txt, ringtail_kernels). To
// add a kernel: declare it in NAME.h with RT_DECLARE_KERNEL, define it in NAME.cc, call it as
// RT_KERNEL(name, arguments...), or take its address, RT_KERNEL(name), once before a loop.
// Rules: plain loops over pointers with `#pragma omp simd`, or Vec (core/kernels/vec.h) where the
// compiler does not keep a product's sums in registers, or the compiler's intrinsics; no inline
// function of the standard library, and no header but <cstdint>, <cmath>, <immintrin.h>, the
// kernels' own, and those that say "for kernels" (core/philox_rounds.h): all their functions are
// static and always inlined. Otherwise the linker could pick an AVX-512 version of a shared inline
// function for a machine that has none (tests/layers/kernel_coverage_test.cc looks at the objects).
// Kernels do not start threads: the caller splits the work with core/parallel_for.h.
// Thread-safety: the selection is made once; SetKernelIsaForTest must not run beside kernels.
#ifndef RINGTAIL_CORE_KERNEL_ISA_H_
#define RINGTAIL_CORE_KERNEL_ISA_H_

namespace ringtail {

enum class KernelIsa { kBaseline, kAvx2, kAvx512 };

// The best one that both the machine and DNNL_MAX_CPU_ISA (AVX2, AVX512_CORE, ...; SSE41: baseline)
// allow.
KernelIsa SelectedKernelIsa();
const char* KernelIsaName(KernelIsa isa);  // "baseline", "avx2", "avx512"
const char* KernelImplementation();        // "ringtail:avx512", for reports about layers
void SetKernelIsaForTest(KernelIsa isa);   // one that the machine supports

template <typename Function>
Function* SelectKernel(Function* baseline, Function* avx2, Function* avx512) {
  switch (SelectedKernelIsa()) {
    case KernelIsa::kAvx512:
      return avx512;
    case KernelIsa::kAvx2:
      return avx2;
    case KernelIsa::kBaseline:
      break;
  }
  return baseline;
}

#define RT_DECLARE_KERNEL(declaration) \
  namespace baseline {                 \
  declaration;                         \
  }                                    \
  namespace avx2 {                     \
  declaration;                         \
  }                                    \
  namespace avx512 {                   \
  declaration;                         \
  }

#define RT_KERNEL(name, ...)                                                   \
  ::ringtail::SelectKernel(::ringtail::baseline::name, ::ringtail::avx2::name, \
                           ::ringtail::avx512::name) __VA_OPT__((__VA_ARGS__))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNEL_ISA_H_
