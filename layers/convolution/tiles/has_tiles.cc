#include "layers/convolution/tiles/has_tiles.h"

#include "core/kernel_isa.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ringtail {
namespace {

#if defined(__x86_64__) && defined(__linux__)

bool ProcessorHasTiles() {
  constexpr unsigned kLeaf = 7, kBf16 = 1U << 22, kTiles = 1U << 24;  // of edx
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kLeaf, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kBf16) != 0 && (edx & kTiles) != 0;
}

bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h; XFEATURE_XTILEDATA
  return ProcessorHasTiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

bool MayUseTiles() { return false; }

#endif

}  // namespace

bool HasBf16Tiles() {
  static const bool may = MayUseTiles();
  return may && SelectedKernelIsa() == KernelIsa::kAvx512;
}

}  // namespace ringtail
