// The forward and the backward-data direction of a 1x1 convolution of stride 1: one product of
// pixels and weights,
//
//   out[n][k][pixel] = act(bias[k] + sum over c of in[n][c][pixel] weight[k][c])
//
// where backward-data reads the weight transposed. The weights are packed at every call into
// [panel of 2 channel blocks of k][c][lane]. For each run of pixels that fits the second-level
// cache, each panel passes once over the run; where there are many c, some of them at a time.
// A map of src (batch norm before) is applied to one run at a time, in the cache, while the next
// comes from memory; the moments of dst (for a batch norm after it), or the sums of diff_src (for
// one before it), are taken while it is in registers.
// Cost: 2 N H W C K FLOPs; memory traffic is `in` and `out`, once.
// Threads divide pixels, or panels where there are few pixels; each element of `out` is summed by
// one thread in the order of c, so its bits depend on neither.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"
#include "layers/convolution/pixel_view.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseData : public ConvolutionAlgorithm {
 public:
  // `problem` is one that CreatePointwise takes, of stride 1; `direction` not kBackwardWeights.
  PointwiseData(const ConvolutionProblem& problem, ConvolutionDirection direction);

  std::string name() const override { return "pointwise"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return forward_; }
  bool adds_to_diff_src() const override { return !forward_; }
  int64_t moments_pixels() const override { return forward_ ? pieces_.piece_pixels() : 0; }
  int64_t gradient_sums_pixels() const override { return forward_ ? 0 : pieces_.piece_pixels(); }
  void Run(const ConvolutionTensors& tensors) override;

  // Backward-data run by run, for a caller that has a run of diff_dst in a cache: PackWeights packs
  // all weights; MultiplyRun writes the run of t.diff_src, or adds to it, and takes its sums.
  // `fetch`: the pixels that the caller reads next.
  size_t packed_bytes() const;
  void PackWeights(const float* weight, float* packed) const;
  void MultiplyRun(const float* packed, const PixelPieces::Run& run, const PixelView& diff_dst,
                   const PixelView& fetch, const ConvolutionTensors& t) const;

 private:
  struct Call {  // the arguments of Run, and what is prepared from them
    const float* in;
    ChannelAffine in_affine;
    const float *weight, *bias;
    float* out;
    BlobMoments moments;
    bool stream, add;
    // Backward: of batch norm before.
    const float* src;
    ChannelAffine src_affine;
    BlobGradientSums sums;
  };
  struct Range {  // of panels or pieces
    int64_t begin, end;
  };

  void PackPanel(const float* weight, int64_t panel, float* to) const;
  const float* PackBias(const float* bias, float* to) const;
  void MultiplyPanels(const Call& call, const PixelPieces::Run& run, const PixelPieces::Run& next,
                      const Range& panels, float* buffer) const;
  void MultiplyPass(const Call& call, const PixelPieces::Run& run, const PixelView& in,
                    const PixelView& fetch, int64_t first_channel, const Range& panels) const;
  void TakeMoments(const Call& call, const PixelBlocks& blocks, PointwiseProduct* product) const;
  void TakeSums(const Call& call, const PixelBlocks& blocks, PointwiseProduct* product) const;
  int64_t BufferFloats() const;  // of a thread: a run of a pass, mapped
  bool Streams(const float* out) const;
  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  int64_t PanelFloats() const;               // of the packed weights

  bool forward_;
  bool in_is_affine_;
  Activation activation_;
  BlobDesc in_, out_;
  int64_t lanes_, panels_;
  int64_t pass_channels_;  // summed over at a time: whole blocks
  PixelPieces pieces_;
  int64_t threads_;
  ScratchLayout scratch_;
  size_t packed_, bias_, buffers_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_DATA_H_
