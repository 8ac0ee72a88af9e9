// Max pooling over windows (layers/pooling/pool_window.h).
//   src (N, C, H, W) -> dst (N, C, OH, OW), layout of src
//   dst = max over the window's elements inside the image
//   diff_src = sum of diff_dst over the windows that the element won
// The first maximum of a window, row by row, wins (as in PyTorch); a NaN is the maximum of its
// window.
// State: which tap won, one byte per element of dst (four if a window has more than 256 taps).
// Errors: window out of range (InferShape). Cost: memory-bound; backward writes diff_src once.
#ifndef RINGTAIL_LAYERS_POOLING_MAX_POOL_H_
#define RINGTAIL_LAYERS_POOLING_MAX_POOL_H_

#include <string>

#include "layers/kernels/max_pool.h"
#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class MaxPoolLayer : public Layer {
 public:
  explicit MaxPoolLayer(const PoolConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
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
  bool wide() const;  // a tap's number does not fit into a byte

  const PoolConfig config_;
  BlobDesc src_, dst_;
  MaxPoolGeometry geometry_{};
  bool training_ = true;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_MAX_POOL_H_
