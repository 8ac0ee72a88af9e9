// The ends of a stage's net (layers/pipeline/stage.h): where blobs come in from another process, and
// where they leave.
//
//   message -> Receive -> dst        diff_dst -> Receive -> message
//   src -> Send -> message           message -> Send -> diff_src
//
// Each copies one blob, with all threads, from or to the memory that StepContext::boundary names;
// where the message is bf16 and the blob f32, it is rounded to nearest even on its way. In evaluation
// of a net alone there is no boundary, and neither may run.
// Thread-safety: as all layers.
#ifndef RINGTAIL_LAYERS_PIPELINE_BOUNDARY_LAYERS_H_
#define RINGTAIL_LAYERS_PIPELINE_BOUNDARY_LAYERS_H_

#include <optional>

#include "layers/layer.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

// Its src stands for the message: the shape, layout and type of the blob that the stage before has.
class ReceiveLayer : public Layer {
 public:
  explicit ReceiveLayer(std::optional<BlobType> wire) : wire_(wire) {}
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType>, BlobType) const override { return true; }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  const std::optional<BlobType> wire_;
  BlobDesc blob_;
};

// Its dst has no elements.
class SendLayer : public Layer {
 public:
  explicit SendLayer(std::optional<BlobType> wire) : wire_(wire) {}
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType>, BlobType) const override { return true; }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  const std::optional<BlobType> wire_;
  BlobDesc blob_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_PIPELINE_BOUNDARY_LAYERS_H_
