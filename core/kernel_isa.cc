#include "core/kernel_isa.h"

#include <cstdlib>
#include <cstring>

namespace ringtail {
namespace {

KernelIsa MachineIsa() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return KernelIsa::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return KernelIsa::kAvx2;
  return KernelIsa::kBaseline;
}

// oneDNN's own switch caps our kernels, too, so that both can be tested
// for a smaller machine at once.
KernelIsa EnvironmentCap() {
  const char* cap = std::getenv("DNNL_MAX_CPU_ISA");
  if (cap == nullptr || std::strcmp(cap, "ALL") == 0 || std::strcmp(cap, "DEFAULT") == 0 ||
      std::strncmp(cap, "AVX512", 6) == 0) {
    return KernelIsa::kAvx512;
  }
  return std::strncmp(cap, "AVX2", 4) == 0 ? KernelIsa::kAvx2 : KernelIsa::kBaseline;
}

KernelIsa& Selected() {
  static KernelIsa isa = MachineIsa() < EnvironmentCap() ? MachineIsa() : EnvironmentCap();
  return isa;
}

}  // namespace

KernelIsa SelectedKernelIsa() { return Selected(); }
void SetKernelIsaForTest(KernelIsa isa) { Selected() = isa; }

const char* KernelIsaName(KernelIsa isa) {
  switch (isa) {
    case KernelIsa::kAvx512:
      return "avx512";
    case KernelIsa::kAvx2:
      return "avx2";
    case KernelIsa::kBaseline:
      break;
  }
  return "baseline";
}

const char* KernelImplementation() {
  switch (SelectedKernelIsa()) {
    case KernelIsa::kAvx512:
      return "ringtail:avx512";
    case KernelIsa::kAvx2:
      return "ringtail:avx2";
    case KernelIsa::kBaseline:
      break;
  }
  return "ringtail:baseline";
}

}  // namespace ringtail
