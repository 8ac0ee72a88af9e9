// Matrices in double precision, for references: simple and slow.
#ifndef RINGTAIL_TESTS_OPTIM_DOUBLE_MATRIX_H_
#define RINGTAIL_TESTS_OPTIM_DOUBLE_MATRIX_H_

#include <cstdint>
#include <vector>

namespace ringtail {

struct DoubleMatrix {
  int64_t rows, cols;
  std::vector<double> values;  // row-major
  double& at(int64_t i, int64_t j) { return values[i * cols + j]; }
  double at(int64_t i, int64_t j) const { return values[i * cols + j]; }
};

DoubleMatrix operator*(const DoubleMatrix& a, const DoubleMatrix& b);
DoubleMatrix Transpose(const DoubleMatrix& a);

// optim/orthogonalize.h's iteration, always with x x^T. `values`: row-major, `rows` rows.
std::vector<double> OrthogonalizedInDouble(int64_t rows, std::vector<double> values);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_OPTIM_DOUBLE_MATRIX_H_
