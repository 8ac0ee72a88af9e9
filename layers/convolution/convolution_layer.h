// Convolution (cross-correlation, as everywhere in deep learning), with bias and activation fused.
//   src (N, IC, H, W), weight (OC, IC/groups, KH, KW), bias (OC) -> dst (N, OC, OH, OW)
//   dst[n,oc,y,x] = act(bias[oc] + sum over ic, i, j of
//                       weight[oc,ic,i,j] src[n, ic, y SH + i DH - PT, x SW + j DW - PL])
//   OH = floor((H + PT + PB - DH (KH - 1) - 1) / SH) + 1
// Padding reads zeros. ReLU and ReLU6 can be fused: their gradient needs dst alone.
// State: none. Scratch: weights in oneDNN's blocked layout, there for one call only (they change
// every step, so keeping them would save nothing); other tensors only where layouts disagree.
// Cost: 2 N OC OH OW IC/groups KH KW FLOPs forward, twice that backward.
// Source: LeCun et al. 1989.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_

#include <memory>

#include "layers/layer.h"
#include "layers/net.pb.h"
#include "layers/window.h"

namespace ringtail {

class ConvolutionLayer : public Layer {
 public:
  explicit ConvolutionLayer(const ConvolutionConfig& config);
  ~ConvolutionLayer() override;

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 private:
  struct Primitives;
  const ConvolutionConfig& config_;
  Activation activation_ = Activation::kNone;
  Window window_;
  int64_t groups_ = 1;
  BlobDesc dst_;
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_
