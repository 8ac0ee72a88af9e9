// What the matrix products of a linear layer share: how they are divided among the threads, and
// when a gradient is written around the caches.
// Thread-safety: the trainer thread; fn is called from several threads at once.
#ifndef RINGTAIL_LAYERS_LINEAR_PRODUCT_PARTS_H_
#define RINGTAIL_LAYERS_LINEAR_PRODUCT_PARTS_H_

#include <algorithm>
#include <cstdint>

#include "core/parallel_for.h"
#include "core/round.h"

namespace ringtail {

// Multiply-adds below which a thread costs more than it saves.
inline constexpr int64_t kGrainProducts = 1 << 16;

// Splits 0 .. count - 1 at multiples of `unit` and calls fn(part, begin, end) for each part, in
// parallel. Each of count takes `products` multiply-adds.
template <typename Function>
void ForEachPart(int64_t threads, int64_t count, int64_t unit, int64_t products,
                 const Function& fn) {
  const int64_t units = CeilDivide(count, unit);
  const int64_t worth = count * products / kGrainProducts;
  const int64_t parts = std::clamp<int64_t>(std::min(units, worth), 1, threads);
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = units * part / parts * unit;
      const int64_t end = std::min(units * (part + 1) / parts * unit, count);
      fn(part, begin, end);
    }
  });
}

// Whether diff_weight (M, K) will have left the caches when the optimizer reads it, and may be
// written around them: in whole lines.
inline bool StreamsGradient(const float* diff_weight, int64_t M, int64_t K) {
  constexpr int64_t kLineFloats = 16, kLineBytes = 64, kCacheFloats = (16 << 20) / sizeof(float);
  return K % kLineFloats == 0 && reinterpret_cast<uintptr_t>(diff_weight) % kLineBytes == 0 &&
         M * K > kCacheFloats;
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_PRODUCT_PARTS_H_
