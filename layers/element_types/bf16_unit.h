// Bf16Unit: the instructions that multiply bf16 operands, their kernels, and which of them is fast
// on this machine. Thread-safety: any thread.
#ifndef RINGTAIL_LAYERS_ELEMENT_TYPES_BF16_UNIT_H_
#define RINGTAIL_LAYERS_ELEMENT_TYPES_BF16_UNIT_H_

#include "layers/kernels/bf16/bf16_tiles.h"

namespace ringtail {

enum class Bf16Unit {
  kNone,
  kPairs,  // vdpbf16ps (AVX512-BF16)
  kTiles,  // tdpbf16ps (AMX)
};

// Of a unit that this machine has.
struct Bf16UnitKernels {
  // On each thread, before its first product and after its last.
  void (*begin)();
  void (*end)();
  void (*multiply)(const Bf16TileProduct& product);
  void (*multiply_gradient)(const Bf16TileGradient& product);
};
Bf16UnitKernels KernelsOf(Bf16Unit unit);

// The best that this machine has, be it fast or not.
Bf16Unit BestBf16Unit();

// The best if its products take less time than those of f32 (core/fast_bf16_products.h), else kNone.
Bf16Unit FastBf16Unit();

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ELEMENT_TYPES_BF16_UNIT_H_
