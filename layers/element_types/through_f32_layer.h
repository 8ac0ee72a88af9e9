// ThroughF32Layer: lets a layer that computes on f32 blobs alone stand among bf16 blobs. It widens
// what the layer reads into scratch before each call, and rounds what the layer wrote afterwards;
// blobs that are f32 already go in and out as they are.
//
//   bf16 src --widen--> f32 --layer--> f32 --round to nearest--> bf16 dst
//
// Scratch: the layer's, and f32 copies of the bf16 blobs of one call. Cost: a pass over each of
// them. Fusion with neighbours and recomputing (layers/fusion.h) are not for such a layer.
#ifndef RINGTAIL_LAYERS_ELEMENT_TYPES_THROUGH_F32_LAYER_H_
#define RINGTAIL_LAYERS_ELEMENT_TYPES_THROUGH_F32_LAYER_H_

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace ringtail {

class ThroughF32Layer : public Layer {
 public:
  explicit ThroughF32Layer(std::unique_ptr<Layer> layer);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;
  std::vector<AlgorithmTimings> Timings() const override { return layer_->Timings(); }

 private:
  // A blob of the net, as it is outside, and where its f32 copy lies in scratch.
  struct Port {
    BlobDesc desc;
    size_t copy = 0;
    bool copies() const { return desc.type != BlobType::kF32; }
  };
  size_t LayOutScratch(const LayerPlan& inner, const SetupArgs& args);
  const std::unique_ptr<Layer> layer_;
  std::vector<Port> src_, diff_src_;
  Port dst_, diff_dst_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ELEMENT_TYPES_THROUGH_F32_LAYER_H_
