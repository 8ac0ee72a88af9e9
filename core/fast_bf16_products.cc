#include "core/fast_bf16_products.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/product_speed.h"

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

bool FastBf16Products() noexcept {
  if (!RT_KERNEL(HasBf16Products)()) return false;
  static const bool fast = PairsAreFast();
  return fast;
}

}  // namespace ringtail
