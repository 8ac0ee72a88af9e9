// Linear (fully connected, inner product), with bias and activation fused.
//   src (N, C, H, W) read as (N, K), K = C H W; weight (M, K), bias (M) -> dst (N, M)
//   dst = act(src weight^T + bias)
//   diff_weight = diff_dst^T src, diff_bias = sum over n of diff_dst, diff_src = diff_dst weight
// dst, weights and gradients are plain; a src in channel blocks is copied to plain order, diff_src
// back.
// State: none. Scratch: the copy of src; transposed copies of src, dst and diff_dst; 0.6 MB per
// thread.
// Cost: 2 N K M FLOPs forward, twice that backward, near the machine's peak from about 32 samples
// on; below that each pass costs one reading or writing of the weights at the speed of memory.
// Numerics: sums of f32 over K, M or N in a fixed order, which depends on the instruction set and
// on whether samples or outputs are few (up to 8), not on the number of threads.
#ifndef RINGTAIL_LAYERS_LINEAR_H_
#define RINGTAIL_LAYERS_LINEAR_H_

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class LinearLayer : public Layer {
 public:
  explicit LinearLayer(const LinearConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  size_t LayOutScratch();  // returns its size in bytes
  const float* PlainSrc(const float* src, std::byte* scratch) const;
  void MultiplyForward(const float* src, std::byte* scratch) const;
  void FinishForward(const float* dst_columns, float* dst) const;
  void BackwardWeights(const float* src, const float* diff_dst, std::byte* scratch) const;
  void BackwardData(const float* diff_dst, float* diff_src, std::byte* scratch) const;

  const LinearConfig config_;
  Activation activation_ = Activation::kNone;
  BlobDesc src_, plain_src_, dst_;
  int64_t N_ = 0, K_ = 0, M_ = 0;
  int64_t threads_ = 1;
  // Offsets in scratch, which forward and backward lay out in the same way.
  size_t plain_ = 0;        // (N, K): src, then diff_src; only where src is in blocks
  size_t src_columns_ = 0;  // (K, N)
  size_t dst_columns_ = 0;  // (M, N): dst, diff_dst
  size_t multiply_ = 0;     // buffers of the products, per thread
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_H_
