// DropConnect: a linear layer whose weights are dropped at random in training, one mask per step.
//
//   src (N, C, H, W) read as (N, K), weight (M, K), bias (M) -> dst (N, M)
//   training:   dst = act(src (m * weight)^T + bias), m ~ Bernoulli(1 - rate) per weight
//               diff_weight = m * (diff_dst^T src)
//   evaluation: dst = act(src ((1 - rate) weight)^T + bias), the mean over all masks
// Nothing is rescaled in training, so that both have the same expectation before the activation.
//
// m is a function of (run's seed, step, layer's key, index of the weight): the same for all samples
// of a step and on every process. State: the layer keeps the masked weights and their gradient,
// twice the weights' memory, outside the net's plan.
// Cost: that of linear, and a few passes over the weights.
// Errors: those of linear; InvalidArgument unless 0 <= rate < 1.
// Source: Wan et al., ICML 2013, section 3; evaluation by the mean instead of their Gaussian.
#ifndef RINGTAIL_LAYERS_DROP_CONNECT_H_
#define RINGTAIL_LAYERS_DROP_CONNECT_H_

#include <memory>

#include "layers/layer.h"
#include "layers/linear/linear.h"

namespace ringtail {

class DropConnectConfig;

class DropConnectLayer : public Layer {
 public:
  DropConnectLayer(const DropConnectConfig& config, uint64_t key);
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  // dst = m * src, element by element; both are as large as the weights.
  void ApplyMask(const StepContext& step, std::span<const float> src, std::span<float> dst) const;

  const float rate_;
  const uint64_t key_;
  LinearLayer linear_;                      // reads the masked weights
  std::unique_ptr<ParameterArena> masked_;  // one parameter: m * weight, and diff of it
  const Parameter* weight_ = nullptr;       // the net's
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_DROP_CONNECT_H_
