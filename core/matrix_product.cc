#include "core/matrix_product.h"

#include <oneapi/dnnl/dnnl.h>

#include "core/check.h"

namespace ringtail {

void MultiplyMatrices(float alpha, Operand op_a, const MatrixView& a, Operand op_b,
                      const MatrixView& b, float beta, const MatrixView& c) {
  const auto letter = [](Operand op) { return op == Operand::kAsIs ? 'N' : 'T'; };
  const int64_t depth = op_a == Operand::kAsIs ? a.cols : a.rows;
  const dnnl_status_t status = dnnl_sgemm(letter(op_a), letter(op_b), c.rows, c.cols, depth, alpha,
                                          a.data, a.cols, b.data, b.cols, beta, c.data, c.cols);
  RT_CHECK(status == dnnl_success, "a product of matrices failed");
}

}  // namespace ringtail
