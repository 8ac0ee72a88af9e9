// Bf16LinearProducts: products of bf16 operands, summed in f32. The weights stay f32 in memory:
// each is read once in a direction, and rounded while a part of them is packed for the multiplier;
// a gradient is written once. So a product costs 4 bytes of memory per weight, and one with a
// copy of the weights in bf16, which each step would have to make anew, at least 8.
//
//   direction          rows (16 x 32 numbers)     columns (32 numbers x 16)     numbers
//   forward            weight, by rows            src: samples                  inputs
//   backward-data      diff_dst: samples          weight, by columns            outputs
//   backward-weights   diff_dst: outputs          src: inputs                   samples
//
// The part of the weights is in the second-level cache: 32 rows x kDepth inputs forward, kDataDepth
// rows x a strip of inputs backward.
// Rows are bf16 or f32; f32 is rounded to nearest even in operands, and results are f32 then.
// Scratch: an operand of the other two matrices, and 0.2 to 0.6 MB per thread.
// Cost: 2 N K M FLOPs each; by tiles (AMX) 64 samples take at most a fifth more time than reading the
// weights does (README.md).
// Numerics: products are exact, sums f32 in an order that depends on the instruction, not on the
// number of threads; subnormal numbers count as 0; results are rounded once.
// Source of the scheme: Goto & van de Geijn 2008, "Anatomy of High-Performance Matrix
// Multiplication".
#ifndef RINGTAIL_LAYERS_LINEAR_BF16_PRODUCTS_H_
#define RINGTAIL_LAYERS_LINEAR_BF16_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/linear/linear_products.h"

namespace ringtail {

class Bf16LinearProducts final : public LinearProducts {
 public:
  // `unit` is one that this machine has.
  Bf16LinearProducts(const LinearSizes& sizes, BlobType rows, Bf16Unit unit);

  size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string name() const override;
  void Forward(const float* src, const Weights& weights, Activation activation, float* dst,
               std::byte* scratch) const override;
  void BackwardWeights(const float* src, const float* diff_dst, float* diff_weight,
                       std::byte* scratch) const override;
  void BackwardBias(const float* diff_dst, float* diff_bias) const override;
  void BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                    std::byte* scratch) const override;

 private:
  // Blocks of 16 rows and of 16 columns, and what their sums are over.
  struct Product {
    const Bfloat16* rows;
    int64_t row_stride;
    const Bfloat16* columns;
    int64_t column_block_stride;
    int64_t row_blocks, column_blocks;
    int64_t numbers;  // a multiple of 32
    float* sums;      // tiles [row block][column block]
    bool accumulate;
  };
  // Of one thread.
  struct Buffers {
    Bfloat16* operand;
    float* sums;
  };
  void Multiply(const Product& product) const;
  Buffers BuffersOf(std::byte* scratch, int64_t part) const;
  // Calls fn(begin, end, buffers) for parts of `count`, on threads that may multiply.
  template <typename Function>
  void ForEachPartOf(int64_t count, std::byte* scratch, const Function& fn) const;
  template <typename Element>
  void ForwardOn(const Element* src, const Weights& weights, Activation activation, Element* dst,
                 std::byte* scratch) const;
  template <typename Element>
  void PackSrc(const Element* src, Bfloat16* to) const;
  template <typename Element>
  void WeightsOn(const Element* src, const Element* diff_dst, float* diff_weight,
                 std::byte* scratch) const;
  template <typename Element>
  void DataOn(const Element* diff_dst, const float* weight, Element* diff_src,
              std::byte* scratch) const;

  const int64_t N_, K_, M_;
  const BlobType rows_;
  const Bf16Unit unit_;
  const int64_t threads_;
  const Bf16UnitKernels kernels_;
  int64_t sample_blocks_;                                    // of 16
  int64_t input_numbers_, output_numbers_, sample_numbers_;  // K, M, N in whole groups of 32
  int64_t data_stride_, weights_stride_;  // numbers between rows of diff_dst as an operand
  int64_t panel_rows_;                    // of weights, forward, for which sums are kept
  int64_t data_strip_, weights_strip_;    // inputs at a time, backward
  // Offsets in scratch, and sizes per thread.
  size_t operand_ = 0, buffers_ = 0, sums_ = 0;
  int64_t buffer_numbers_ = 0, sum_floats_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_BF16_PRODUCTS_H_
