// Fusion: work on a blob that one of its neighbours can do while the blob is in its caches. All of
// it is optional: a layer that ignores the member `fusion` of its arguments (layers/layer.h) and
// leaves that of its plan alone is complete. Batch norm and convolutions use it: between two
// convolutions that do all of it a batch norm touches no pixel.
//
//   convolution  --src-->  batch norm  --dst-->  convolution            forward
//     takes the moments      deferred:             applies the affine map
//     of what it writes      writes no dst         while it loads src
//
//   convolution  <-diff_src-  batch norm  <-diff_dst-  convolution      backward
//     applies the gradient      writes no                takes the sums of
//     map while it loads        diff_src                 what it writes
//
// Deferral: dst of a batch norm is an affine map of its src. Its only consumer gets that src and
// the map instead. What this saves (layers/net/net_memory.h places the memory):
//
//   the consumer maps in   dst                                           saves
//   both directions        never written                                 a write, and recomputing
//   forward alone          written for the consumer's backward           a write
//   backward alone         written by forward, dropped afterwards        recomputing
//
// Accumulation, of all consumers of a blob: backward runs in reverse order, and every consumer but
// the one that comes first there may add its gradient to the sum instead of leaving that to the
// net. Who owns what: the net owns all memory, decides, and fills in the arguments; coefficients of
// maps lie in the batch norm's state. Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_FUSION_H_
#define RINGTAIL_LAYERS_FUSION_H_

#include <cstddef>
#include <cstdint>

#include "layers/kernels/affine.h"
#include "layers/moments.h"

namespace ringtail {

// Setup: what the neighbours could leave to this layer.
struct FusionOffer {
  // src[0] is the dst of a batch norm that has no other consumer: it may be deferred, and wants the
  // sums of diff_src[0].
  bool src_is_affine = false;
  // The only consumer of dst is a batch norm: it wants the moments of dst, and diff_dst may come as
  // a map.
  bool dst_is_normalized = false;
  // Another consumer of src[0] has written diff_src[0] before.
  bool diff_src_is_sum = false;
};

// Setup's answer: which of it this layer can do.
struct FusionPlan {
  bool dst_is_affine = false;  // dst is DstAffine() of src[0]; requires `recomputable`
  bool forward_takes_affine = false, backward_takes_affine = false;  // of src[0]
  // Forward can take the moments of dst, in parts of so many pixels; 0: it cannot.
  int64_t dst_moments_pixels = 0;
  bool backward_takes_map = false;  // of diff_dst
  // Backward can take the gradient sums of diff_src[0] for the batch norm whose map it gets with
  // src[0] (backward_takes_affine), in parts of so many pixels; 0: it cannot.
  int64_t diff_src_sums_pixels = 0;
  bool backward_adds = false;  // Backward can add to diff_src[0] instead of overwriting it
};

// Forward: what is to be done.
struct ForwardFusion {
  ChannelAffine src_affine;  // the layer's input is this map of src[0]
  BlobMoments src_moments;   // of src[0], taken by the previous layer; only for a batch norm
  BlobMoments dst_moments;   // to be written
};

// Backward: what is to be done.
struct BackwardFusion {
  ChannelAffine src_affine;        // as in ForwardFusion
  ChannelGradient diff_dst_map;    // the gradient is this map of diff_dst
  BlobGradientSums diff_dst_sums;  // taken by the next layer; only for a batch norm
  BlobGradientSums diff_src_sums;  // to be written
  bool add_to_diff_src = false;    // diff_src[0] is to be added to
};

// What a batch norm tells its neighbours. Its Forward may get src_moments and, deferred, no dst;
// its Backward may get diff_dst_sums and no diff_src[0], which is then DiffSrcMap() of diff_dst.
class FusedNormalization {
 public:
  // The map that makes dst of src[0]; Forward writes its coefficients to `state`.
  virtual ChannelAffine DstAffine(const std::byte* state) const = 0;
  // The map that makes diff_src[0] of diff_dst; Backward writes its coefficients to `state`.
  virtual ChannelGradient DiffSrcMap(const float* src, const std::byte* state) const = 0;

 protected:
  ~FusedNormalization() = default;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_FUSION_H_
