#include "dist/compression/direction_guard.h"

#include <cmath>

#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

double Norm(std::span<const float> a) { return std::sqrt(SumOfSquares(a)); }

}  // namespace

bool DirectionGuard::Guards(int64_t step, size_t bucket) const {
  return every_steps_ > 0 && step % every_steps_ == 0 &&
         step / every_steps_ % buckets_ == static_cast<int64_t>(bucket);
}

void DirectionGuard::Compare(size_t parameter, std::span<const float> dense,
                             std::span<const float> compressed, std::span<const float> residual,
                             int ranks) {
  const double norm = Norm(dense), sent = Norm(compressed);
  if (norm == 0) return;
  readings_.push_back({.parameter = parameter,
                       .cosine = sent == 0 ? 0 : Dot(compressed, dense) / norm / sent,
                       .residual = residual.empty() ? 0 : Norm(residual) * ranks / norm});
}

}  // namespace ringtail
