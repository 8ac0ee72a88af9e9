// HighwayGate: mixes a transformed input h with the input x itself, as a learned gate t says.
//
//   src h, t, x (N, C, H, W) of one shape, any layouts -> dst, same shape, in the layout of h
//   s = sigmoid(t);  dst = s h + (1 - s) x
//   diff_h = s diff_dst;  diff_t = s (1 - s) (h - x) diff_dst;  diff_x = (1 - s) diff_dst
//
// State: none; Backward computes s again. Scratch: t and x, later their gradients, where they come
// in another layout than h. In place: in Backward, and in Forward if nothing is to be learned.
// Cost: one pass over memory; the sigmoid is vectorized.
// Errors: InvalidArgument unless there are three inputs of one shape.
// Source: Srivastava et al. 2015, eq. 3.
#ifndef RINGTAIL_LAYERS_HIGHWAY_GATE_H_
#define RINGTAIL_LAYERS_HIGHWAY_GATE_H_

#include <array>

#include "layers/layer.h"

namespace ringtail {

class HighwayGateConfig;

class HighwayGateLayer : public Layer {
 public:
  explicit HighwayGateLayer(const HighwayGateConfig& config);
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  static constexpr size_t kInputs = 3;  // h, t, x
  // The inputs in the layout of h: where they are, or converted into scratch.
  std::array<const float*, kInputs> Sources(std::span<const float* const> src,
                                            std::byte* scratch) const;

  std::array<BlobDesc, kInputs> src_;
  std::array<size_t, kInputs> converted_{};  // offsets in scratch of inputs in the layout of h
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_HIGHWAY_GATE_H_
