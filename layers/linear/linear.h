// Linear (fully connected, inner product), with bias and activation fused.
//   src (N, C, H, W) read as (N, K), K = C H W; weight (M, K), bias (M) -> dst (N, M)
//   dst = act(src weight^T + bias)
//   diff_weight = diff_dst^T src, diff_bias = sum over n of diff_dst, diff_src = diff_dst weight
// dst, weights and gradients are plain; a src in channel blocks is copied to plain order, diff_src
// back.
// src and dst are f32, or both are bf16 where this machine multiplies bf16 fast: products are then
// of bf16 operands, as are those of a layer behind a ThroughF32Layer whose dst is bf16.
// State: none. Scratch: the copy of src, and what the products need. Cost and numerics:
// layers/linear/f32_products.h, bf16_products.h.
#ifndef RINGTAIL_LAYERS_LINEAR_LINEAR_H_
#define RINGTAIL_LAYERS_LINEAR_LINEAR_H_

#include <memory>

#include "layers/layer.h"
#include "layers/linear/linear_products.h"
#include "layers/linear/plain_rows.h"
#include "layers/net.pb.h"

namespace ringtail {

class LinearLayer : public Layer {
 public:
  explicit LinearLayer(const LinearConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  const LinearConfig config_;
  Activation activation_ = Activation::kNone;
  BlobDesc dst_;
  PlainRows rows_;
  std::unique_ptr<const LinearProducts> products_;
  size_t plain_ = 0;     // in scratch, (N, K): src, then diff_src; only where src is in blocks
  size_t multiply_ = 0;  // in scratch: of the products
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_LINEAR_H_
