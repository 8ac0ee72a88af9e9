#include "dist/compression/sketches/power_sgd_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace ringtail {
namespace {

bool Alive(std::span<const float> vector) {
  bool zero = true;
  for (const float x : vector) {
    if (!std::isfinite(x)) return false;
    zero = zero && x == 0;
  }
  return !zero;
}

}  // namespace

PowerSgdSketch::PowerSgdSketch(const PowerSgdOptions& options, const GradientShape& shape)
    : shape_{.rows = shape.rows,
             .columns = shape.columns,
             .rank = std::min<int64_t>({options.rank, shape.rows, shape.columns})},
      p_(shape_.rank * shape.rows),
      q_(shape_.rank * shape.columns) {
  RT_CHECK(options.rank >= 1, "the rank is at least 1");
}

bool PowerSgdSketch::Worthwhile(const GradientShape& shape, int rank) {
  return 2 * rank * (shape.rows + shape.columns) < shape.elements();
}

std::string PowerSgdSketch::Describe() const { return fmt::format("rank {}", shape_.rank); }

int64_t PowerSgdSketch::Floats(int round) const {
  return static_cast<int64_t>(round == 0 ? p_.size() : q_.size());
}

void PowerSgdSketch::DrawDeadVectors(const EncodeContext& context) {
  for (int64_t c = 0; c < shape_.rank; ++c) {
    const std::span<float> vector = std::span(q_).subspan(c * shape_.columns, shape_.columns);
    if (Alive(vector)) continue;
    Rng random(
        RngKey(context.seed).With("power_sgd").With(context.parameter).With(context.step).With(c));
    for (float& x : vector) x = 2 * random.Uniform() - 1;
  }
}

void PowerSgdSketch::Pack(int round, const EncodeContext& context, std::span<const float> gradient,
                          std::span<float> floats) {
  if (round == 0) {
    DrawDeadVectors(context);
    MultiplyRows(shape_, gradient, q_, floats);
  } else {
    MultiplyColumns(shape_, gradient, p_, floats);
  }
}

void PowerSgdSketch::Take(int round, const EncodeContext&, std::span<const float> sum) {
  std::vector<float>& taken = round == 0 ? p_ : q_;
  RT_CHECK(sum.size() == taken.size(), "the sum has the size of what was packed");
  std::copy(sum.begin(), sum.end(), taken.begin());
  if (round == 0) Orthonormalise(shape_.rows, shape_.rank, p_);
}

void PowerSgdSketch::Unpack(const EncodeContext&, std::span<float> approximation) {
  MultiplyOut(shape_, p_, q_, approximation);
}

}  // namespace ringtail
