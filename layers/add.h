// Sum of two or more inputs of one shape, with ReLU or ReLU6 fused (the end of a residual block, He
// et al. 2016, figure 2).
//   dst = act(src[0] + src[1] + ...), layout of src[0]
//   diff_src[i] = act'(dst) diff_dst for every i
// In place both ways over input 0. Inputs in other layouts are converted.
// State: none. Scratch: a converted input. Errors: shapes that differ (InferShape).
// Cost: memory-bound, each blob read or written once.
#ifndef RINGTAIL_LAYERS_ADD_H_
#define RINGTAIL_LAYERS_ADD_H_

#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class AddLayer : public Layer {
 public:
  explicit AddLayer(const AddConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  template <typename Element>
  void ForwardOn(const ForwardArgs& args);
  template <typename Element>
  void BackwardOn(const BackwardArgs& args);
  Activation activation_ = Activation::kNone;
  std::vector<BlobDesc> src_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ADD_H_
