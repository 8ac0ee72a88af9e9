// Layer: one node of a net. Its life has three stages, each called once or more in this order:
//
//   InferShape          checks the config against the shapes of its inputs; says the output's
//                       shape, parameters, FLOPs.
//   Setup               layouts are known: creates every primitive, says what memory it needs and
//                       for how long.
//   Forward / Backward  run. They allocate nothing, create nothing and cannot fail.
//
// Who owns what: the net owns all memory (activations, gradients, state, scratch) and hands out
// pointers; the arena owns parameters; a layer owns its primitives and numbers. No oneDNN type
// appears here.
// Vocabulary: src -> layer -> dst; diff_dst -> layer -> diff_src. Shapes (N, C, H, W), see
// layers/blob.h. Gradients are sums over the samples of the batch, not means (the optimizer
// divides).
// Thread-safety: the trainer thread only. Layers run parallel loops through core/parallel_for.h or
// oneDNN.
#ifndef RINGTAIL_LAYERS_LAYER_H_
#define RINGTAIL_LAYERS_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/config/field_check.h"
#include "core/parameter.h"
#include "core/random.h"
#include "core/status.h"
#include "layers/blob.h"
#include "layers/kernels/affine.h"
#include "layers/moments.h"

namespace ringtail {

class LayerConfig;
class InitializerConfig;

// An element-wise function that a producer can apply while it writes dst (fused), because its
// gradient needs dst alone.
enum class Activation { kNone, kRelu, kRelu6 };

// What a kernel that fuses the activation clamps to, and its gradient is zero at and beyond. The
// compiler asks for the bounds of a new one; one that is no clamp needs kernels of its own.
constexpr float LowerBound(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return -std::numeric_limits<float>::infinity();
    case Activation::kRelu:
    case Activation::kRelu6:
      return 0;
  }
  CheckFailed(__FILE__, __LINE__, "", "no such activation");
}
constexpr float UpperBound(Activation activation) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
      return std::numeric_limits<float>::infinity();
    case Activation::kRelu6:
      return 6;
  }
  CheckFailed(__FILE__, __LINE__, "", "no such activation");
}

// A parameter as its layer wants it: what it is and how it starts.
struct ParameterRequest {
  ParameterSpec spec;  // name: "weight", "bias", "running_mean": the net puts "<layer>." before it
  bool is_buffer = false;
  const InitializerConfig* init = nullptr;  // null: `fallback_init`; lives as long as the layer
  std::string init_field;                   // where `init` stands in the layer's config
  enum class Fallback { kHeNormal, kZero, kOne } fallback_init = Fallback::kZero;
  int64_t fan_in = 0, fan_out = 0;
};

struct ShapeInfo {
  BlobDesc dst;  // block is ignored here
  std::vector<ParameterRequest> parameters;
  // Per batch; a multiply-add counts 2; convolutions and linears only, as is usual.
  double forward_flops = 0;
};

struct SetupArgs {
  std::span<const BlobDesc> src;  // with layouts
  // As requested, in that order; valid while the layer lives.
  std::span<const Parameter* const> parameters;
  bool training = true;  // false: Backward will never be called
  bool measure = true;   // algorithms of which nothing is known; false: do without
  bool allocate = true;  // false: it will never run, and `parameters` are only shapes
  std::span<const bool> needs_diff_src;  // per src: whether anything behind it learns
  // src[0] is a dst_is_affine that nobody else reads: it may be deferred.
  bool src_is_affine = false;
  bool dst_is_normalized = false;  // dst has one reader, and that one normalizes()
  // diff_src[0] is a sum that another reader of src[0] has begun: it may be added to.
  bool diff_src_is_begun = false;
};

// What Setup decides. Bytes are for one step; the net shares memory between layers
// where lifetimes allow.
struct LayerPlan {
  // With the layout that the layer writes; diff_dst comes in the same layout, diff_src[i] is wanted
  // in the layout of src[i].
  BlobDesc dst;
  size_t state_bytes = 0;  // written by Forward, read by the matching Backward (masks, statistics)
  size_t scratch_bytes = 0;  // during one call only
  bool backward_needs_src = false;
  bool backward_needs_dst = false;
  bool forward_in_place = false;   // dst may be the same memory as src[0] (same layout)
  bool recomputable = false;       // Recompute can write dst again, from src and state
  bool backward_in_place = false;  // diff_src[0] may be the same memory as diff_dst (same layout)
  // Deferral (layers/net/net_memory.h): dst need not be written, because it is DstAffine() of src[0];
  // requires `recomputable`. And, in a reader: src[0] may come in that form.
  bool dst_is_affine = false;
  bool forward_takes_affine = false, backward_takes_affine = false;
  // Forward can take the moments of dst, in parts of so many pixels; 0: it cannot.
  int64_t dst_moments_pixels = 0;
  // diff_dst may come as a map of another blob (DiffSrcMap of the layer that reads dst).
  bool backward_takes_map = false;
  // Backward can take the gradient sums of diff_src[0] for the batch norm whose map it gets with
  // src[0] (backward_takes_affine), in parts of so many pixels; 0: it cannot.
  int64_t diff_src_sums_pixels = 0;
  // Backward can add to diff_src[0] instead of overwriting it.
  bool backward_adds = false;
};

// What was measured when a layer had a choice of algorithms for one direction.
struct AlgorithmTimings {
  std::string direction;  // "forward", "backward-data", "backward-weights", "backward"
  std::string chosen;     // of `seconds`
  std::map<std::string, double> seconds;  // per call, by algorithm
};

// Adds numbers up over the ranks that compute one batch together, in place: every rank ends with
// the same sums. Blocks; all ranks call it as often, with as many numbers. What became of it if it
// failed is the owner's business: the numbers are then of no use, nor is the pass.
class RankSum {
 public:
  virtual ~RankSum() = default;
  virtual void Sum(std::span<double> numbers) = 0;
};

// What is the same for all layers of one pass.
struct StepContext {
  bool training = true;      // batch statistics, dropout on
  uint64_t seed = 0;         // the run's
  uint64_t step = 0;         // optimizer step; dropout is a function of (seed, step, layer, sample)
  int64_t first_sample = 0;  // position of row 0 in the global batch
  std::span<const int32_t> labels;  // N class indices; -1: no sample in this row
  RankSum* ranks = nullptr;  // batch norm normalises over the batch of all; null: over its own
};

struct ForwardArgs {
  std::span<const float* const> src;
  ChannelAffine src_affine;      // the layer's input is this of src[0]; see forward_takes_affine
  BlobMoments src_moments;       // those of src[0], if normalizes() and the layer before took them
  float* dst = nullptr;          // null: deferred, see dst_is_affine
  BlobMoments dst_moments;       // to be written; see dst_moments_pixels
  std::byte* state = nullptr;    // 64-byte aligned
  std::byte* scratch = nullptr;  // 64-byte aligned
  const StepContext* step = nullptr;
};

struct BackwardArgs {
  std::span<const float* const> src;  // null entries unless backward_needs_src
  ChannelAffine src_affine;           // as in ForwardArgs; see backward_takes_affine
  const float* dst = nullptr;         // null unless backward_needs_dst
  float* diff_dst = nullptr;          // the layer may overwrite it: it is the last reader
  ChannelGradient diff_dst_map;       // the gradient is this of diff_dst; see backward_takes_map
  BlobGradientSums diff_dst_sums;     // if normalizes() and the layer behind took them
  std::span<float* const> diff_src;   // to be overwritten; null where not needed, or a map
  BlobGradientSums diff_src_sums;     // to be written; see diff_src_sums_pixels
  bool add_to_diff_src = false;       // diff_src[0] is to be added to; see backward_adds
  std::byte* state = nullptr;
  std::byte* scratch = nullptr;
  const StepContext* step = nullptr;
  // Parameter gradients are overwritten in parameters[i]->grad().
};

class Layer {
 public:
  virtual ~Layer() = default;

  // InvalidArgument, without the layer's name (the net adds name and place), if the config does not
  // fit; failed_field() then says which field of it. Every size is checked against overflow: no dimension above 2^31, no blob above 2^40 bytes.
  virtual StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) = 0;
  // The field of the layer's config that InferShape refused: "epsilon"; "": no one field.
  const std::string& failed_field() const { return failed_field_; }

  // True if the layer takes the activation over:
  // it then writes act(dst) and the net drops the other layer.
  virtual bool FuseActivation(Activation activation);

  virtual StatusOr<LayerPlan> Setup(const SetupArgs& args) = 0;
  virtual void Forward(const ForwardArgs& args) = 0;
  virtual void Backward(const BackwardArgs& args) = 0;

  // Writes the dst of the last Forward again, bit for bit, from src and state (scratch is null);
  // changes nothing else. Called only if the plan says `recomputable`: then dst need not be kept
  // from forward to backward.
  virtual void Recompute(const ForwardArgs& args);

  // The map that makes dst of src[0], whose coefficients Forward puts into `state`.
  // Called only if the plan says `dst_is_affine`.
  virtual ChannelAffine DstAffine(const std::byte* state) const;

  // Whether it is a batch norm: Forward may get the moments of src[0], and Backward the sums of
  // diff_dst. Backward may be without a diff_src[0], which is then DiffSrcMap(): of diff_dst, with
  // coefficients that Backward puts into `state`.
  virtual bool normalizes() const { return false; }
  virtual ChannelGradient DiffSrcMap(const float* src, const std::byte* state) const;

  // What Setup chose, for `time` and `summary`: "jit:avx512_core", "ringtail:avx2".
  // Empty: nothing to say.
  virtual std::string Implementation() const { return {}; }
  // For `time` and `summary`, too. Empty: there was no choice.
  virtual std::vector<AlgorithmTimings> Timings() const { return {}; }
  // Where the net is a classifier's loss, the last layer; see layers/softmax_cross_entropy.h.
  virtual bool IsLoss() const { return false; }

 protected:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // For InferShape to check its config with.
  FieldCheck fields() { return FieldCheck(&failed_field_); }

 private:
  std::string failed_field_;
};

// Creates the layer that `config` describes (layers/net/factory.cc has the list). InvalidArgument if no kind is set; Internal if it is a composite (expand first). `key` is
// unique to the layer within the net: random masks are drawn from it.
StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerConfig& config, uint64_t key);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LAYER_H_
