// Concat: joins its inputs along channels.
//
//   src[i] (N, C_i, H, W), any layouts -> dst (N, sum of C_i, H, W), in the inputs' largest block
//   diff_src[i] = the channels of diff_dst that came from src[i]
//
// State: none. Cost: one copy each way, of whole channel blocks where an input has dst's layout and
// starts at a block's edge, plane by plane otherwise.
// Errors: InvalidArgument unless there are two or more inputs with the same N, H and W.
#ifndef RINGTAIL_LAYERS_CONCAT_H_
#define RINGTAIL_LAYERS_CONCAT_H_

#include <vector>

#include "layers/layer.h"

namespace ringtail {

class ConcatConfig;

class ConcatLayer : public Layer {
 public:
  explicit ConcatLayer(const ConcatConfig& config);
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  std::vector<BlobDesc> src_;
  std::vector<int64_t> first_channel_;  // of each input within dst
  BlobDesc dst_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONCAT_H_
