// Convolution (cross-correlation, as everywhere in deep learning), with bias and activation fused.
//   src (N, IC, H, W), weight (OC, IC/groups, KH, KW), bias (OC) -> dst (N, OC, OH, OW)
//   dst[n,oc,y,x] = act(bias[oc] + sum over ic, i, j of
//                       weight[oc,ic,i,j] src[n, ic, y SH + i DH - PT, x SW + j DW - PL])
//   OH = floor((H + PT + PB - DH (KH - 1) - 1) / SH) + 1
// Padding reads zeros. ReLU and ReLU6 can be fused: their gradient needs dst alone.
// Each direction is computed by the fastest algorithm for its shapes (choose_algorithm.h), in the
// layouts that oneDNN prefers.
// State: none. Scratch: what the algorithms need. Errors: a window that is out of range or does not
// fit, channels that `groups` does not divide (InferShape).
// Cost: 2 N OC OH OW IC/groups KH KW FLOPs forward, twice that backward; a Winograd algorithm does
// with a quarter of them.
// Source: LeCun et al. 1989.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_

#include <memory>
#include <string>
#include <vector>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class ConvolutionLayer : public Layer {
 public:
  explicit ConvolutionLayer(const ConvolutionConfig& config);

  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool FuseActivation(Activation activation) override;
  bool RunsOn(std::span<const BlobType>, BlobType) const override { return true; }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;
  std::vector<AlgorithmTimings> Timings() const override { return timings_; }

 private:
  void ChooseAlgorithms(const SetupArgs& args, AlgorithmChoices* choices);

  const ConvolutionConfig config_;
  ConvolutionProblem problem_;
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;  // null: no bias
  std::unique_ptr<ConvolutionAlgorithm> forward_;
  std::unique_ptr<ConvolutionAlgorithm> backward_;  // of weights alone where diff_src is not needed
  std::vector<AlgorithmTimings> timings_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_LAYER_H_
