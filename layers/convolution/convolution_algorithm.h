// ConvolutionAlgorithm: one way to compute one direction of a convolution; and ConvolutionProblem,
// what all of them are made from. A layer holds one algorithm per direction, chosen by measurement
// (choose_algorithm.h). An algorithm owns its sizes and primitives, but no memory.
//
//   direction          reads                   writes
//   forward            src, weight, bias       dst, after the fused activation
//   backward-data      diff_dst, weight        diff_src
//   backward-weights   src, diff_dst           diff_weight, diff_bias
//   backward           src, diff_dst, weight   diff_src, diff_weight, diff_bias
//
// Blobs have the layouts of the problem's descriptors; padding channels are zero on the way in and
// written as zero (where inputs are finite). Parameters are plain: (OC, IC/groups, KH, KW) and
// (OC), f32. Blobs are float* and hold what their descriptors say (layers/element_types/blob_elements.h): sums are
// f32 in any case, and a bf16 blob is rounded once.
// Thread-safety: the trainer thread only; Run starts threads itself.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_ALGORITHM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_ALGORITHM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "layers/blob.h"
#include "layers/layer.h"
#include "layers/moments.h"
#include "layers/window.h"

namespace ringtail {

enum class ConvolutionDirection { kForward, kBackwardData, kBackwardWeights, kBackward };

constexpr bool WritesDiffSrc(ConvolutionDirection direction) {
  return direction == ConvolutionDirection::kBackwardData ||
         direction == ConvolutionDirection::kBackward;
}

struct ConvolutionProblem {
  Window window;
  int64_t groups = 1;
  BlobDesc src, dst;  // with layouts and types; a dst in bf16 allows bf16 operands of products
  bool bias = false;
  Activation activation = Activation::kNone;  // fused; the caller applies its gradient to diff_dst
  bool training = true;
  // src may come as a batch norm's map of another blob. For an algorithm that cannot apply the map
  // while it loads, batch norm writes src first. The batch norm wants the sums of diff_src; if the
  // algorithm does not take them, batch norm reads diff_src again.
  bool src_is_affine = false;
  // The only consumer of dst is a batch norm. It wants the moments of dst, and diff_dst may come as
  // the map of the gradient that reaches it. If the algorithm does neither, batch norm reads dst
  // for the moments and writes diff_dst.
  bool dst_is_normalized = false;
  // Another consumer of src has written diff_src. An algorithm that cannot add to it leaves the
  // addition to the net.
  bool diff_src_is_sum = false;

  bool depthwise() const { return groups == src.C && groups == dst.C; }
};

// Tensors that a direction does not touch are null; so are bias and diff_bias where there is none.
struct ConvolutionTensors {
  const float *src = nullptr, *weight = nullptr, *bias = nullptr, *diff_dst = nullptr;
  ChannelAffine src_affine;        // the input is this map of src; only if takes_affine()
  ChannelGradient diff_dst_map;    // the gradient is this map of diff_dst; if takes_gradient_map()
  BlobMoments dst_moments;         // to be written; only if moments_pixels() > 0
  BlobGradientSums diff_src_sums;  // likewise, if gradient_sums_pixels() > 0; with a src_affine
  bool add_to_diff_src = false;    // only if adds_to_diff_src()
  float *dst = nullptr, *diff_src = nullptr, *diff_weight = nullptr, *diff_bias = nullptr;
  std::byte* scratch = nullptr;  // 64-byte aligned
};

class ConvolutionAlgorithm {
 public:
  virtual ~ConvolutionAlgorithm() = default;

  virtual std::string name() const = 0;  // "winograd 4x4", "jit:avx512_core": shown, and in caches
  virtual std::string description() const { return name(); }  // shown only
  virtual size_t scratch_bytes() const = 0;
  // Whether it can apply a map to src while it loads it: the same bits as from the mapped src, if
  // that is f32 (a bf16 blob would have been rounded).
  virtual bool takes_affine() const { return false; }
  virtual bool takes_gradient_map() const { return false; }  // the same for diff_dst
  virtual bool adds_to_diff_src() const { return false; }
  // Forward: whether it can take the moments of dst, in parts of so many pixels; 0: it cannot.
  virtual int64_t moments_pixels() const { return 0; }
  // Backward-data and backward: whether it can take the sums of diff_src for the batch norm whose
  // map src_affine is, in parts of so many pixels; 0: it cannot. For them it reads src, too.
  virtual int64_t gradient_sums_pixels() const { return 0; }
  virtual void Run(const ConvolutionTensors& tensors) = 0;

 protected:
  ConvolutionAlgorithm() = default;
  ConvolutionAlgorithm(const ConvolutionAlgorithm&) = delete;
  ConvolutionAlgorithm& operator=(const ConvolutionAlgorithm&) = delete;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_ALGORITHM_H_
