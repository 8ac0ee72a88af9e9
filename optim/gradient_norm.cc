#include "optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel_for.h"
#include "core/sum_of_squares.h"

namespace ringtail {

double GradientSquares(std::span<const float> grads) {
  // One partial sum per fixed-size range, added in order: the same bits for any number of threads.
  constexpr int64_t kRange = 1 << 14;
  const int64_t size = static_cast<int64_t>(grads.size());
  std::vector<double> partial((size + kRange - 1) / kRange);
  ParallelFor(static_cast<int64_t>(partial.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      partial[r] = SumOfSquares(grads.subspan(r * kRange, std::min(kRange, size - r * kRange)));
    }
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  return sum;
}

double GradientNorm(const ParameterArena& arena, double grad_scale) {
  return std::sqrt(GradientSquares(arena.grads())) * grad_scale;
}

double ClipFactor(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1.0; }

}  // namespace ringtail
