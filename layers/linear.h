// Linear (fully connected, inner product), with bias and activation fused.
//   src (N, C, H, W) read as (N, K), K = C H W; weight (M, K), bias (M) -> dst (N, M)
//   dst = act(src weight^T + bias)
// Plain layouts throughout: weights of 400 MB would cost more to reorder than to multiply with.
// State: none. Scratch: src in plain order if it comes in channel blocks.
// Cost: 2 N K M FLOPs forward, twice that backward.
#ifndef RINGTAIL_LAYERS_LINEAR_H_
#define RINGTAIL_LAYERS_LINEAR_H_

#include <memory>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class LinearLayer : public Layer {
 public:
  explicit LinearLayer(const LinearConfig& config);
  ~LinearLayer() override;

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  struct Primitives;
  const LinearConfig& config_;
  Activation activation_ = Activation::kNone;
  BlobDesc src_, dst_;
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_H_
