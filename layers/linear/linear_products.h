// LinearProducts: the matrix products of a linear layer, with parallel kernels.
//   src (N, K), weight (M, K), bias (M) -> dst (N, M) = act(src weight^T + bias)
//   diff_weight = diff_dst^T src, diff_bias = sum over n of diff_dst, diff_src = diff_dst weight
// All are plain. src, dst and their gradients hold what `rows` says, as blobs do
// (layers/element_types/blob_elements.h); weight, bias and their gradients are f32.
// Operands of products are f32 (f32_products.h) or rounded to bf16 (bf16_products.h); sums are f32.
// State: none. Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_
#define RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "layers/activation.h"
#include "layers/blob.h"
#include "layers/layer.h"

namespace ringtail {

struct LinearSizes {
  int64_t N = 0, K = 0, M = 0;  // samples, inputs, outputs
};

// What the operands of a layer's products may be rounded to.
inline BlobType OperandType(const SetupArgs& args) {
  return args.may_round_operands ? BlobType::kBf16 : args.dst_type;
}

class LinearProducts {
 public:
  // For as many threads as compute now. bf16 operands where they are asked for and this machine
  // multiplies them fast (bf16_unit.h); bf16 rows only then.
  static std::unique_ptr<LinearProducts> Create(const LinearSizes& sizes, BlobType rows,
                                                BlobType operands);
  virtual ~LinearProducts() = default;

  virtual size_t scratch_bytes() const = 0;  // of any call; 64-byte aligned
  virtual std::string name() const = 0;      // "ringtail:avx512"

  struct Weights {
    const float* weight = nullptr;
    const float* bias = nullptr;  // null: zeros
  };
  virtual void Forward(const float* src, const Weights& weights, Activation activation, float* dst,
                       std::byte* scratch) const = 0;
  virtual void BackwardWeights(const float* src, const float* diff_dst, float* diff_weight,
                               std::byte* scratch) const = 0;
  virtual void BackwardBias(const float* diff_dst, float* diff_bias) const = 0;
  virtual void BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                            std::byte* scratch) const = 0;

 protected:
  LinearProducts() = default;
  LinearProducts(const LinearProducts&) = delete;
  LinearProducts& operator=(const LinearProducts&) = delete;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_
