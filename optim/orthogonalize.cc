#include "optim/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/parallel_for.h"
#include "core/round.h"

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
constexpr int kRoundX = 0, kGram = 1, kFirstPolynomial = 2, kSecondRound = 3;
constexpr int kLast = Orthogonalization::kStages - 1, kRoundQ = kLast - 1;
constexpr int kStagesOfRound = 4;
constexpr int64_t kRowsOfPart = 64;  // that are rounded: even

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

int RoundOf(int stage) {
  return stage < kSecondRound ? 0 : 1 + (stage - kSecondRound) / kStagesOfRound;
}

bool IsPolynomial(int stage) {
  if (stage < kSecondRound || stage >= kRoundQ) return stage == kFirstPolynomial;
  return (stage - kSecondRound) % kStagesOfRound == kNextPolynomial;
}

// How many pairs so many numbers are; the last may lack its second.
int64_t Pairs(int64_t numbers) { return CeilDivide(numbers, int64_t{2}); }

// Row by row; `to` has pairs along its rows.
void RoundRows(const MatrixView& from, int64_t begin, int64_t end, const MatrixView& to) {
  for (int64_t row = begin; row < end; ++row) {
    auto* const numbers = reinterpret_cast<Bfloat16*>(to.data + row * to.cols);
    RT_KERNEL(NarrowToBfloat16, from.data + row * from.cols, from.cols, numbers);
    if (from.cols % 2 != 0) numbers[from.cols] = {0};
  }
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

void Orthogonalization::Start(Numbers numbers, int64_t rows, int64_t cols, double squares, float* x,
                              float* result) {
  numbers_ = numbers;
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
  if (numbers == Numbers::kFloat) return;
  const size_t pairs = Pairs(cols) * rows + Pairs(rows) * cols + Pairs(k) * k;
  if (pairs_.size_bytes() < pairs * sizeof(float)) pairs_ = AlignedBuffer(pairs * sizeof(float));
}

MatrixView Orthogonalization::x_along() const {
  return {pairs_.floats().data(), x_.rows, Pairs(x_.cols)};
}

MatrixView Orthogonalization::x_across() const {
  const MatrixView along = x_along();
  return {along.data + along.rows * along.cols, Pairs(x_.rows), x_.cols};
}

MatrixView Orthogonalization::q_along() const {
  const MatrixView across = x_across();
  const int64_t k = std::min(x_.rows, x_.cols);
  return {across.data + across.rows * across.cols, k, Pairs(k)};
}

void Orthogonalization::RoundX(int64_t part) const {
  const int64_t begin = part * kRowsOfPart, end = std::min(begin + kRowsOfPart, x_.rows);
  RoundRows(x_, begin, end, x_along());
  const MatrixView across = x_across();
  for (int64_t row = begin; row < end; row += 2) {
    const float* const first = x_.data + row * x_.cols;
    const float* const second = row + 1 < x_.rows ? first + x_.cols : nullptr;
    RT_KERNEL(PairBfloat16Rows, first, second, x_.cols,
              reinterpret_cast<Bfloat16*>(across.data + row / 2 * across.cols));
  }
}

void Orthogonalization::RoundQ(int64_t part) const {
  const int64_t begin = part * kRowsOfPart;
  RoundRows(last_q(), begin, std::min(begin + kRowsOfPart, last_q().rows), q_along());
}

MatrixView Orthogonalization::Square(int64_t i) const {
  const int64_t k = std::min(x_.rows, x_.cols);
  return {squares_.floats().data() + i * k * k, k, k};
}

MatrixProduct Orthogonalization::Gram() const {
  const bool pairs = numbers_ == Numbers::kBfloat16;
  const MatrixView x = !pairs ? x_ : wide() ? x_along() : x_across();
  return {.a = x,
          .b = x,
          .c = Square(0),
          .op_a = wide() ? Operand::kAsIs : Operand::kTransposed,
          .op_b = wide() ? Operand::kTransposed : Operand::kAsIs,
          .alpha = scale_ * scale_,
          .symmetric = true,
          .pairs = pairs};
}

// Q, which is symmetric, is its own transpose.
MatrixProduct Orthogonalization::Last() const {
  if (numbers_ == Numbers::kFloat) {
    return {
        .a = wide() ? last_q() : x_, .b = wide() ? x_ : last_q(), .c = result_, .alpha = scale_};
  }
  return {.a = wide() ? q_along() : x_along(),
          .b = wide() ? x_across() : q_along(),
          .c = result_,
          .op_b = wide() ? Operand::kAsIs : Operand::kTransposed,
          .alpha = scale_,
          .pairs = true};
}

// Round r, from 1 on, makes q(r) from q(r - 1); P A is kept in its place before.
MatrixProduct Orthogonalization::Stage(int stage) const {
  const MatrixView gram = Square(0), p = Square(1);
  if (stage == kGram) return Gram();
  if (stage == kFirstPolynomial) return PolynomialOf(0, gram, q(0));
  if (stage == kLast) return Last();
  const int round = RoundOf(stage);
  const MatrixView before = round == 1 ? q(0) : p;  // the polynomial of the round before
  switch (static_cast<StageOfRound>((stage - kSecondRound) % kStagesOfRound)) {
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

int64_t Orthogonalization::parts(int stage) const {
  if (zero_) return 0;
  if (stage != kRoundX && stage != kRoundQ) return NumParts(Stage(stage));
  if (numbers_ == Numbers::kFloat) return 0;
  return CeilDivide(stage == kRoundX ? x_.rows : last_q().rows, kRowsOfPart);
}

void Orthogonalization::Run(int stage, int64_t part) const {
  if (stage == kRoundX) return RoundX(part);
  if (stage == kRoundQ) return RoundQ(part);
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
