// ConvolutionAlgorithm: one way to compute one direction of a convolution; and ConvolutionProblem,
// what all of them are made from. A layer holds one algorithm per direction, chosen by measurement
// (choose_algorithm.h).
//
//   direction          reads                   writes
//   forward            src, weight, bias       dst, after the fused activation
//   backward-data      diff_dst, weight        diff_src
//   backward-weights   src, diff_dst           diff_weight, diff_bias
//   backward           src, diff_dst, weight   diff_src, diff_weight, diff_bias
//
// Blobs have the layouts of the problem's descriptors; padding channels are zero on the way in and
// written as zero (where inputs are finite). Parameters are plain: (OC, IC/groups, KH, KW) and
// (OC).
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

struct ConvolutionProblem {
  Window window;
  int64_t groups = 1;
  BlobDesc src, dst;  // with layouts
  bool bias = false;
  Activation activation = Activation::kNone;  // fused; the caller applies its gradient to diff_dst
  bool training = true;
  // src may come as a batch norm's map of another blob: who cannot take it so has it written first.
  // The batch norm wants the sums of diff_src: who does not take them has it read again for them.
  bool src_is_affine = false;
  // A batch norm alone reads dst. It wants the moments of dst, and diff_dst may come as the map of
  // what reaches the batch norm: who gives and takes neither has it take them and write it.
  bool dst_is_normalized = false;
  bool diff_src_is_begun = false;  // backward may add to it: who cannot leaves that to the net

  bool depthwise() const { return groups == src.C && groups == dst.C; }
};

// Those that a direction does not touch are null; bias and diff_bias are null where there is none.
struct ConvolutionTensors {
  const float *src = nullptr, *weight = nullptr, *bias = nullptr, *diff_dst = nullptr;
  ChannelAffine src_affine;      // what is read is this of src; only if the algorithm takes_affine
  ChannelGradient diff_dst_map;  // diff_dst is this of diff_dst; only if takes_gradient_map
  BlobMoments dst_moments;       // to be written, if moments_pixels() is not 0
  BlobGradientSums diff_src_sums;  // ... if gradient_sums_pixels() is not 0; with a src_affine
  bool add_to_diff_src = false;    // only if the algorithm adds_to_diff_src()
  float *dst = nullptr, *diff_src = nullptr, *diff_weight = nullptr, *diff_bias = nullptr;
  std::byte* scratch = nullptr;  // 64-byte aligned
};

class ConvolutionAlgorithm {
 public:
  virtual ~ConvolutionAlgorithm() = default;

  virtual std::string name() const = 0;  // "winograd 4x4", "jit:avx512_core": for people and caches
  virtual std::string description() const { return name(); }  // for people alone
  virtual size_t scratch_bytes() const = 0;
  // Whether it can apply a map to src while it loads it: the same bits as from the mapped src.
  virtual bool takes_affine() const { return false; }
  virtual bool takes_gradient_map() const { return false; }  // the same of diff_dst
  virtual bool adds_to_diff_src() const { return false; }
  // Forward: pixels per part of the moments of dst that it can take; 0: it cannot.
  virtual int64_t moments_pixels() const { return 0; }
  // Backward-data, and both gradients: pixels per part of the sums of diff_src that it can take for
  // the batch norm whose map src_affine is; 0: it cannot. For them it reads src, too.
  virtual int64_t gradient_sums_pixels() const { return 0; }
  virtual void Run(const ConvolutionTensors& tensors) = 0;

 protected:
  ConvolutionAlgorithm() = default;
  ConvolutionAlgorithm(const ConvolutionAlgorithm&) = delete;
  ConvolutionAlgorithm& operator=(const ConvolutionAlgorithm&) = delete;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_CONVOLUTION_ALGORITHM_H_
