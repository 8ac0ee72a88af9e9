#include "tests/optim/double_matrix.h"

#include <cmath>
#include <numeric>

namespace ringtail {

DoubleMatrix operator*(const DoubleMatrix& a, const DoubleMatrix& b) {
  DoubleMatrix c{a.rows, b.cols, std::vector<double>(a.rows * b.cols)};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.cols; ++k) {
      for (int64_t j = 0; j < b.cols; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}

DoubleMatrix Transpose(const DoubleMatrix& a) {
  DoubleMatrix t{a.cols, a.rows, std::vector<double>(a.values.size())};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) t.at(j, i) = a.at(i, j);
  }
  return t;
}

std::vector<double> OrthogonalizedInDouble(int64_t rows, std::vector<double> values) {
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  for (double& v : values) v /= std::sqrt(squares);
  DoubleMatrix x{rows, static_cast<int64_t>(values.size()) / rows, values};
  constexpr double kRounds[][3] = {{8.3853, -24.5675, 18.0384},
                                   {4.0936, -3.0159, 0.5612},
                                   {3.7086, -2.7477, 0.5314},
                                   {2.7981, -2.0729, 0.4573}};
  for (const auto& [linear, cubic, quintic] : kRounds) {
    const DoubleMatrix a = x * Transpose(x), square = a * a;
    DoubleMatrix polynomial = a;
    for (size_t i = 0; i < a.values.size(); ++i) {
      polynomial.values[i] = cubic * a.values[i] + quintic * square.values[i];
    }
    const DoubleMatrix moved = polynomial * x;
    for (size_t i = 0; i < x.values.size(); ++i) {
      x.values[i] = linear * x.values[i] + moved.values[i];
    }
  }
  return x.values;
}

}  // namespace ringtail
