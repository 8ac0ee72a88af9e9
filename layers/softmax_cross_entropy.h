// Softmax cross-entropy with label smoothing s: the loss of a classifier.
//   src: logits z (N, C), any finite f32;  labels: N class indices, -1 for a row without a sample
//   q = (1 - s) onehot(label) + s / C,   p = softmax(src row)
//   dst (N): loss of each row; 0 for label -1
//          = -sum_k q_k log p_k = logsumexp(z) - (1 - s) z_label - s/C sum_k z_k
//   diff_src = p - q for the SUM of the rows' losses (diff_dst is not read); 0 for label -1
// With soft targets (step_context.h) a row is a label and another, with weights v and w: its loss is
//   v loss(label) + w loss(other label), so q = v q(label) + w q(other label), and diff_src =
//   (v + w) p - q. The smoothed one-hot vectors are mixed, as timm does; v + w is 1 unless classes
//   have weights.
// State: p. Computed in double per row: C is small beside everything else.
// Source: Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7 (smoothing);
// Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization" (soft targets).
#ifndef RINGTAIL_LAYERS_SOFTMAX_CROSS_ENTROPY_H_
#define RINGTAIL_LAYERS_SOFTMAX_CROSS_ENTROPY_H_

#include <memory>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class SoftmaxCrossEntropyLayer : public Layer {
 public:
  explicit SoftmaxCrossEntropyLayer(const SoftmaxCrossEntropyConfig& config) : config_(config) {}

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  const SoftmaxCrossEntropyConfig config_;
  BlobDesc src_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_SOFTMAX_CROSS_ENTROPY_H_
