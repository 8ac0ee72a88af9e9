// Flatten: (N, C, H, W) -> (N, C*H*W), in plain row-major order, as linear layers read it.
// In place where the memory order is the same already; else one copy each way.
#ifndef RINGTAIL_LAYERS_FLATTEN_H_
#define RINGTAIL_LAYERS_FLATTEN_H_

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class FlattenLayer : public Layer {
 public:
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  BlobDesc src_, plain_;  // plain_: the shape of src in plain order
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_FLATTEN_H_
