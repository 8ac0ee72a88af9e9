#include "layers/element_types/bf16_unit.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/check.h"
#include "core/kernel_isa.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/kernels/bf16/bf16_dot_tiles.h"
#include "layers/kernels/bf16/bf16_products.h"

namespace ringtail {
namespace {

double SecondsOf(float (*run)(int64_t)) {
  constexpr int64_t kSteps = 200;
  const auto begin = std::chrono::steady_clock::now();
  [[maybe_unused]] volatile const float sum = run(kSteps);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least of many moments, in turn: what disturbs only adds time. An instruction makes two products
// of bf16, or one of f32: at twice the time nothing is gained.
bool PairsAreFast() {
  constexpr int kMoments = 100;
  constexpr double kSame = 1.5;
  double bf16 = std::numeric_limits<double>::infinity(), f32 = bf16;
  for (int i = 0; i < kMoments; ++i) {
    bf16 = std::min(bf16, SecondsOf(RT_KERNEL(RunBf16Products)));
    f32 = std::min(f32, SecondsOf(RT_KERNEL(RunFloatProducts)));
  }
  return bf16 < kSame * f32;
}

}  // namespace

Bf16UnitKernels KernelsOf(Bf16Unit unit) {
  if (unit == Bf16Unit::kTiles) {
    return {RT_KERNEL(BeginBf16Tiles), RT_KERNEL(EndBf16Tiles), RT_KERNEL(MultiplyBf16Tiles),
            RT_KERNEL(MultiplyBf16TileGradient)};
  }
  RT_CHECK(unit == Bf16Unit::kPairs, "no unit has no kernels");
  constexpr auto kNothing = [] {};
  return {kNothing, kNothing, RT_KERNEL(MultiplyBf16DotTiles), RT_KERNEL(MultiplyBf16DotGradient)};
}

Bf16Unit BestBf16Unit() {
  if (HasBf16Tiles()) return Bf16Unit::kTiles;
  return RT_KERNEL(HasBf16Products)() ? Bf16Unit::kPairs : Bf16Unit::kNone;
}

Bf16Unit FastBf16Unit() {
  const Bf16Unit best = BestBf16Unit();
  if (best != Bf16Unit::kPairs) return best;
  static const bool fast = PairsAreFast();
  return fast ? best : Bf16Unit::kNone;
}

}  // namespace ringtail
