#include "core/matrix_product.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "core/check.h"
#include "core/kernels/product_block.h"
#include "core/round.h"

namespace ringtail {
namespace {

constexpr int64_t kStripRows = 64;
constexpr int64_t kSlice = 512;

int64_t Depth(const MatrixProduct& p) { return p.op_a == Operand::kAsIs ? p.a.cols : p.a.rows; }

// Rows [top, top + rows) and columns [left, left + cols) of c.
void MultiplyBlock(const MatrixProduct& p, int64_t top, int64_t rows, int64_t left, int64_t cols) {
  const auto letter = [](Operand op) { return op == Operand::kAsIs ? 'N' : 'T'; };
  const float* const a = p.a.data + top * (p.op_a == Operand::kAsIs ? p.a.cols : 1);
  const float* const b = p.b.data + left * (p.op_b == Operand::kAsIs ? 1 : p.b.cols);
  const dnnl_status_t status =
      dnnl_sgemm(letter(p.op_a), letter(p.op_b), rows, cols, Depth(p), p.alpha, a, p.a.cols, b,
                 p.b.cols, p.beta, p.c.data + top * p.c.cols + left, p.c.cols);
  RT_CHECK(status == dnnl_success, "a product of matrices failed");
}

// Rows [begin, end) and columns [left, right) of c, by the kernel of our own.
void MultiplyByKernel(const MatrixProduct& p, const StripRows& rows, int64_t left, int64_t right) {
  const bool as_is = p.op_a == Operand::kAsIs;
  const ProductBlock block = {.a = p.a.data,
                              .a_row = as_is ? p.a.cols : 1,
                              .a_column = as_is ? 1 : p.a.cols,
                              .b = p.b.data,
                              .b_transposed = p.op_b == Operand::kTransposed,
                              .b_row = p.b.cols,
                              .c = p.c.data,
                              .c_row = p.c.cols,
                              .depth = Depth(p),
                              .begin = rows.begin,
                              .end = rows.end,
                              .left = left,
                              .right = right,
                              .symmetric = p.symmetric,
                              .pairs = p.pairs,
                              .alpha = p.alpha,
                              .beta = p.beta};
  RT_KERNEL(MultiplyProductBlock, block);
}

}  // namespace

int64_t NumParts(const MatrixProduct& product) {
  const MatrixView& c = product.c;
  if (product.symmetric) return CeilDivide(c.rows, kStripRows);
  return CeilDivide(std::max(c.rows, c.cols), kSlice);
}

StripRows RowsOfStrip(const MatrixProduct& product, int64_t part) {
  const int64_t begin = part * kStripRows;
  return {begin, std::min(begin + kStripRows, product.c.rows)};
}

void MultiplyPart(const MatrixProduct& product, int64_t part) {
  const MatrixView& c = product.c;
  if (product.symmetric) {
    return MultiplyByKernel(product, RowsOfStrip(product, part), 0, c.cols);
  }
  const bool tall = c.rows > c.cols;
  const int64_t begin = part * kSlice, end = std::min(begin + kSlice, tall ? c.rows : c.cols);
  const StripRows rows = tall ? StripRows{begin, end} : StripRows{0, c.rows};
  const int64_t left = tall ? 0 : begin, right = tall ? c.cols : end;
  if (product.pairs) return MultiplyByKernel(product, rows, left, right);
  MultiplyBlock(product, rows.begin, rows.end - rows.begin, left, right - left);
}

void Multiply(const MatrixProduct& product) {
  for (int64_t part = 0; part < NumParts(product); ++part) MultiplyPart(product, part);
}

}  // namespace ringtail
