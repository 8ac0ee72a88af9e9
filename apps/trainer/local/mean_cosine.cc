#include "apps/trainer/local/mean_cosine.h"

#include <algorithm>
#include <cmath>

namespace ringtail {

void DifferenceNorms::Add(double weight, double square) {
  const double own = weight * weight * square;
  squares += own;
  norms += std::sqrt(own);
}

std::optional<double> MeanCosine(const DifferenceNorms& all, double squares_of_sum) {
  // Of all squares: where the products are less, they are lost in the rounding of float32 sums.
  constexpr double kLeast = 1e-5;
  const double products =
      all.norms * all.norms - all.squares;  // of |d_i| |d_j| of all pairs, twice
  const bool known = products > kLeast * all.squares && std::isfinite(squares_of_sum);
  if (!known) return std::nullopt;
  return std::clamp((squares_of_sum - all.squares) / products, -1.0, 1.0);
}

}  // namespace ringtail
