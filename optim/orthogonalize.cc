#include "optim/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr double kSmallest = 0x1p-100;
// A norm whose binary exponent is further from 0: its square, and those of x, may not fit a float.
constexpr int kFar = 30;
// a + b A + c A^2, as in the header's table.
struct Quintic {
  float a, b, c;
};
constexpr Quintic kOfRound[Orthogonalization::kRounds] = {{8.3853F, -24.5675F, 18.0384F},
                                                          {4.0936F, -3.0159F, 0.5612F},
                                                          {3.7086F, -2.7477F, 0.5314F},
                                                          {2.7981F, -2.0729F, 0.4573F}};
constexpr int kGram = 0, kFirstPolynomial = 1, kLast = Orthogonalization::kStages - 1;
constexpr int kStagesOfRound = 4;

enum StageOfRound { kPolynomialTimesGram, kNextGram, kNextPolynomial, kCombine };

void Scale(float factor, int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// c = a b of polynomials of the same symmetric matrix.
MatrixProduct OfPolynomials(const MatrixView& a, const MatrixView& b, const MatrixView& c) {
  return {.a = a, .b = b, .c = c, .symmetric = true};
}

// p = c gram^2 + b p: the polynomial, if b gram is added before and a after.
MatrixProduct PolynomialOf(int round, const MatrixView& gram, const MatrixView& p) {
  const auto& [a, b, c] = kOfRound[round];
  return {.a = gram, .b = gram, .c = p, .alpha = c, .beta = b, .symmetric = true};
}

int RoundOf(int stage) { return stage < 2 ? 0 : 1 + (stage - 2) / kStagesOfRound; }

bool IsPolynomial(int stage) {
  if (stage < 2 || stage == kLast) return stage == kFirstPolynomial;
  return (stage - 2) % kStagesOfRound == kNextPolynomial;
}

void RunPolynomial(const MatrixProduct& product, float constant, int64_t part) {
  const MatrixView &gram = product.a, &p = product.c;
  const StripRows rows = RowsOfStrip(product, part);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    std::copy_n(gram.data + row * gram.cols, rows.end, p.data + row * p.cols);
  }
  MultiplyPart(product, part);
  for (int64_t i = rows.begin; i < rows.end; ++i) p.data[i * p.cols + i] += constant;
}

}  // namespace

void Orthogonalization::Start(int64_t rows, int64_t cols, double squares, float* x, float* result) {
  const int64_t size = rows * cols, k = std::min(rows, cols);
  x_ = {x, rows, cols};
  result_ = {result, rows, cols};
  double norm = std::sqrt(squares);
  // Too small to normalise, as the decayed momentum of a layer without gradient: return zeros. (NaN
  // compares false and propagates.)
  zero_ = norm < kSmallest;
  if (zero_) {
    std::fill_n(result, size, 0.0F);
    return;
  }
  if (const int exponent = std::isfinite(norm) ? std::ilogb(norm) : 0; std::abs(exponent) > kFar) {
    norm = std::scalbn(norm, -exponent);
    Scale(static_cast<float>(std::scalbn(1.0, -exponent)), size, x);
  }
  scale_ = static_cast<float>(1 / norm);
  const size_t bytes = 4 * k * k * sizeof(float);
  if (squares_.size_bytes() < bytes) squares_ = AlignedBuffer(bytes);
}

MatrixView Orthogonalization::Square(int64_t i) const {
  const int64_t k = std::min(x_.rows, x_.cols);
  return {squares_.floats().data() + i * k * k, k, k};
}

// Round r, from 1 on, makes q(r) from q(r - 1); P A is kept in its place before.
MatrixProduct Orthogonalization::Stage(int stage) const {
  const MatrixView gram = Square(0), p = Square(1);
  const bool wide = x_.rows <= x_.cols;  // else the same with transposes
  if (stage == kGram) {
    return {.a = x_,
            .b = x_,
            .c = gram,
            .op_a = wide ? Operand::kAsIs : Operand::kTransposed,
            .op_b = wide ? Operand::kTransposed : Operand::kAsIs,
            .alpha = scale_ * scale_,
            .symmetric = true};
  }
  if (stage == kFirstPolynomial) return PolynomialOf(0, gram, q(0));
  if (stage == kLast) {
    const MatrixView last = q(kRounds - 1);
    return {.a = wide ? last : x_, .b = wide ? x_ : last, .c = result_, .alpha = scale_};
  }
  const int round = RoundOf(stage);
  const MatrixView before = round == 1 ? q(0) : p;  // the polynomial of the round before
  switch (static_cast<StageOfRound>((stage - 2) % kStagesOfRound)) {
    case kPolynomialTimesGram:
      return OfPolynomials(before, gram, q(round));
    case kNextGram:
      return OfPolynomials(q(round), before, gram);
    case kNextPolynomial:
      return PolynomialOf(round, gram, p);
    case kCombine:
      break;
  }
  return OfPolynomials(p, q(round - 1), q(round));
}

int64_t Orthogonalization::parts(int stage) const { return zero_ ? 0 : NumParts(Stage(stage)); }

void Orthogonalization::Run(int stage, int64_t part) const {
  const MatrixProduct product = Stage(stage);
  if (!IsPolynomial(stage)) return MultiplyPart(product, part);
  RunPolynomial(product, kOfRound[RoundOf(stage)].a, part);
}

void Orthogonalization::RunAll() const {
  for (int stage = 0; stage < kStages; ++stage) {
    for (int64_t part = 0; part < parts(stage); ++part) Run(stage, part);
  }
}

void RunTogether(std::span<const Orthogonalization> matrices) {
  struct Unit {
    const Orthogonalization* matrix;
    int64_t part;
  };
  std::vector<Unit> units;
  for (int stage = 0; stage < Orthogonalization::kStages; ++stage) {
    units.clear();
    for (const Orthogonalization& matrix : matrices) {
      for (int64_t part = 0; part < matrix.parts(stage); ++part) units.push_back({&matrix, part});
    }
    // The lower a strip, the longer it is: the longest first.
    std::ranges::stable_sort(units, std::greater<>(), &Unit::part);
    ParallelForEach(std::ssize(units), [&](int64_t i, int64_t /*thread*/) {
      units[i].matrix->Run(stage, units[i].part);
    });
  }
}

}  // namespace ringtail
