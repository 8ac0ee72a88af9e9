// Product of two inputs of one shape.
//   dst = src[0] src[1], layout of src[0]
//   diff_src[0] = src[1] diff_dst
//   diff_src[1] = src[0] diff_dst
// Input 1 is converted if it comes in another layout.
// State: none. Scratch: the converted input. Errors: shapes that differ (InferShape).
// Cost: memory-bound.
#ifndef RINGTAIL_LAYERS_MULTIPLY_H_
#define RINGTAIL_LAYERS_MULTIPLY_H_

#include <array>
#include <string>

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class MultiplyLayer : public Layer {
 public:
  explicit MultiplyLayer(const MultiplyConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  bool converts() const;  // input 1 comes in another layout
  const float* SecondFactor(const float* src, std::byte* scratch) const;

  std::array<BlobDesc, 2> src_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_MULTIPLY_H_
