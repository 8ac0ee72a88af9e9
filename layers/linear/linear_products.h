// LinearProducts: the matrix products of a linear layer, on plain f32 arrays, with parallel kernels.
//   src (N, K), weight (M, K), bias (M) -> dst (N, M) = act(src weight^T + bias)
//   diff_weight = diff_dst^T src, diff_bias = sum over n of diff_dst, diff_src = diff_dst weight
// Scratch: transposed copies of src, dst and diff_dst; 0.6 MB per thread. State: none.
// Cost: 2 N K M FLOPs each, near the machine's peak from about 32 samples on; below that each
// product costs one reading or writing of the weights at the speed of memory.
// Numerics: sums of f32 over K, M or N in a fixed order, which depends on the instruction set and
// on whether samples or outputs are few (up to 8), not on the number of threads.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_
#define RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_

#include <cstddef>
#include <cstdint>

#include "layers/activation.h"

namespace ringtail {

class LinearProducts {
 public:
  LinearProducts() = default;
  LinearProducts(int64_t N, int64_t K, int64_t M);  // for as many threads as compute now

  size_t scratch_bytes() const { return scratch_bytes_; }  // of any call; 64-byte aligned

  struct Weights {
    const float* weight = nullptr;
    const float* bias = nullptr;  // null: zeros
  };
  void Forward(const float* src, const Weights& weights, Activation activation, float* dst,
               std::byte* scratch) const;
  void BackwardWeights(const float* src, const float* diff_dst, float* diff_weight,
                       std::byte* scratch) const;
  void BackwardBias(const float* diff_dst, float* diff_bias) const;
  void BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                    std::byte* scratch) const;

 private:
  void MultiplyForward(const float* src, const float* weight, std::byte* scratch) const;
  void FinishForward(const float* bias, Activation activation, const float* dst_columns,
                     float* dst) const;

  int64_t N_ = 0, K_ = 0, M_ = 0;
  int64_t threads_ = 1;
  // Offsets in scratch.
  size_t src_columns_ = 0;  // (K, N)
  size_t dst_columns_ = 0;  // (M, N): dst, diff_dst
  size_t multiply_ = 0;     // buffers of the products, per thread
  size_t scratch_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_LINEAR_PRODUCTS_H_
