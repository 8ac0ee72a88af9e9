// Both gradients of a 1x1 convolution of stride 1 in one pass over the pixels:
//
//   diff_src[n][ic][pixel] = sum over oc of diff_dst[n][oc][pixel] weight[oc][ic]
//   diff_weight[oc][ic]    = sum over n, pixel of diff_dst[n][oc][pixel] src[n][ic][pixel]
//
// A run of pixels of diff_dst and of src comes to the second-level cache once (mapped, where a
// batch norm before or after the convolution leaves that to it), and both products read it there,
// while the next run comes from memory. The sums of diff_src that a batch norm before wants are
// taken while it is in registers. For layers with many pixels and few channels, which memory
// limits: the sums of all weights must fit the cache, too.
// Cost: 4 N H W IC OC FLOPs; memory traffic is diff_dst, src and diff_src, once.
// The bits do not depend on the number of threads (pointwise_sums.h).
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BACKWARD_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pointwise/pointwise_data.h"
#include "layers/convolution/pointwise/pointwise_sums.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseBackward : public ConvolutionAlgorithm {
 public:
  // `problem` is one that CreatePointwise takes, of stride 1 and such that it Fits.
  explicit PointwiseBackward(const ConvolutionProblem& problem);
  static bool Fits(const ConvolutionProblem& problem);  // no bias, and not too many weights

  std::string name() const override { return "pointwise"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return true; }
  bool takes_gradient_map() const override { return true; }
  bool adds_to_diff_src() const override { return true; }
  int64_t gradient_sums_pixels() const override { return pieces_.piece_pixels(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Buffers {  // of a thread: a run of each, mapped
    float *src, *diff_dst;
  };
  void RunSlot(const ConvolutionTensors& tensors, const float* packed, int64_t slot,
               const Buffers& buffers, float* sums) const;

  BlobDesc src_, dst_;
  PointwiseData data_;
  PointwiseSums sums_;
  PixelPieces pieces_;
  int64_t threads_, src_floats_, diff_dst_floats_;  // of a thread's buffers
  ScratchLayout scratch_;
  size_t packed_at_, sums_at_, buffers_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BACKWARD_H_
