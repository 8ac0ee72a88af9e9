// What a linear layer does beside the products of bf16 numbers (bf16/bf16_tiles.h): it makes their
// operands from matrices, and matrices from their sums. Only with AVX-512 and where
// HasBf16Products() or HasBf16Tiles().
//   rows      [row][number], numbers that are multiplied together adjacent, 32 at a time
//   columns   [block of 16 columns][pair of numbers][column][2]
//   sums      tiles of [16 rows][16 columns]
// Matrices are row-major; an Element is a float, rounded to nearest even, or a Bfloat16. A float
// below the normal numbers becomes 0. What is beyond the end of a matrix is 0 in an operand.
#ifndef RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_BF16_H_
#define RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_BF16_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

template <typename Element>
struct MatrixPart {
  Element* at;
  int64_t stride;  // elements between rows
  int64_t rows, columns;
};

// The row of the matrix as rows of the operand, to_columns (a multiple of 32) of each of to_rows.
RT_DECLARE_KERNEL(template <typename Element> void PackRows(const MatrixPart<const Element>& from,
                                                            int64_t to_rows, int64_t to_columns,
                                                            int64_t to_stride, Bfloat16* to))
// The columns of the matrix as rows of the operand: whole blocks of 16, of to_numbers (a multiple
// of 32) each.
RT_DECLARE_KERNEL(template <typename Element>
                  void PackColumnsAsRows(const MatrixPart<const Element>& from, int64_t to_numbers,
                                         int64_t to_stride, Bfloat16* to))
// The columns of the matrix as columns of the operand, to_numbers (even) of each.
RT_DECLARE_KERNEL(template <typename Element>
                  void PackColumns(const MatrixPart<const Element>& from, int64_t to_numbers,
                                   int64_t to_block_stride, Bfloat16* to))
// At most 16 rows of the matrix as one block of columns of the operand, whole groups of 32 numbers.
RT_DECLARE_KERNEL(template <typename Element>
                  void PackRowsAsColumns(const MatrixPart<const Element>& from, Bfloat16* to))

// to[row][column] = sums, of one row of tiles: at most 16 rows. `stream`: around the caches,
// because it is not read soon; only of floats, rows at multiples of 64 bytes, columns a multiple of
// 16; then FinishTileStreams() comes last.
RT_DECLARE_KERNEL(template <typename Element>
                  void StoreTiles(const float* sums, bool stream, const MatrixPart<Element>& to))
RT_DECLARE_KERNEL(void FinishTileStreams())

// to[column][row] = min(max(sums + bias[row], low), high), of one row of tiles: at most 16 rows,
// which are the columns of `to`. NaN passes through. Null bias: zeros.
struct TileOutputs {
  const float* sums;
  const float* bias;
  float low, high;
};
RT_DECLARE_KERNEL(template <typename Element>
                  void StoreTransposedTiles(const TileOutputs& from, const MatrixPart<Element>& to))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_BF16_H_
