// F32LinearProducts: products of f32 operands, on plain f32 arrays.
// Scratch: transposed copies of src, dst and diff_dst; 0.6 MB per thread.
// Cost: 2 N K M FLOPs each, near the machine's peak from about 32 samples on; below that each
// product costs one reading or writing of the weights at the speed of memory.
// Numerics: sums of f32 over K, M or N in a fixed order, which depends on the instruction set and
// on whether samples or outputs are few (up to 8), not on the number of threads.
#ifndef RINGTAIL_LAYERS_LINEAR_F32_PRODUCTS_H_
#define RINGTAIL_LAYERS_LINEAR_F32_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernel_isa.h"
#include "layers/linear/linear_products.h"

namespace ringtail {

class F32LinearProducts final : public LinearProducts {
 public:
  explicit F32LinearProducts(const LinearSizes& sizes);

  size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string name() const override { return KernelImplementation(); }
  void Forward(const float* src, const Weights& weights, Activation activation, float* dst,
               std::byte* scratch) const override;
  void BackwardWeights(const float* src, const float* diff_dst, float* diff_weight,
                       std::byte* scratch) const override;
  void BackwardBias(const float* diff_dst, float* diff_bias) const override;
  void BackwardData(const float* diff_dst, const float* weight, float* diff_src,
                    std::byte* scratch) const override;

 private:
  void MultiplyForward(const float* src, const float* weight, std::byte* scratch) const;
  void FinishForward(const float* bias, Activation activation, const float* dst_columns,
                     float* dst) const;

  const int64_t N_, K_, M_;
  const int64_t threads_;
  // Offsets in scratch.
  size_t src_columns_ = 0;  // (K, N)
  size_t dst_columns_ = 0;  // (M, N): dst, diff_dst
  size_t multiply_ = 0;     // buffers of the products, per thread
  size_t scratch_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_F32_PRODUCTS_H_
