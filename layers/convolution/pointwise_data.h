// The forward and the backward-data direction of a 1x1 convolution of stride 1: one product of
// pixels and weights,
//
//   out[n][k][pixel] = act(bias[k] + sum over c of in[n][c][pixel] weight[k][c])
//
// where backward-data reads the weight transposed. The weights are packed at every call into
// [panel of 2 channel blocks of k][c][lane]. For each run of pixels that fits the second-level
// cache, each panel passes once over the run; where there are many c, some of them at a time.
// Cost: 2 N H W C K FLOPs; memory traffic is `in` and `out`, once.
// Threads divide pixels, or panels where there are few pixels; each element of `out` is summed by
// one thread in the order of c, so its bits depend on neither.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"

namespace ringtail {

class PointwiseData : public ConvolutionAlgorithm {
 public:
  // `problem` is one that CreatePointwise takes, of stride 1; `direction` not kBackwardWeights.
  PointwiseData(const ConvolutionProblem& problem, ConvolutionDirection direction);

  std::string name() const override { return "pointwise"; }
  size_t scratch_bytes() const override;
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Call {  // the arguments of Run, and what is prepared from them
    const float *in, *weight, *bias;
    float* out;
    bool stream;
  };

  void PackPanel(const float* weight, int64_t panel, float* to) const;
  const float* PackBias(const float* bias, float* to) const;
  void MultiplyPanels(const Call& call, const PixelPieces::Run& run, int64_t first_panel,
                      int64_t last_panel) const;
  void MultiplyPass(const Call& call, const PixelPieces::Run& run, int64_t first_channel,
                    int64_t first_panel, int64_t last_panel) const;
  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  int64_t PanelFloats() const;               // of the packed weights

  bool forward_;
  Activation activation_;
  BlobDesc in_, out_;
  int64_t lanes_, panels_;
  int64_t pass_channels_;  // summed over at a time: whole blocks
  PixelPieces pieces_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_DATA_H_
