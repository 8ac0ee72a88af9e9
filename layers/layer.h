// Layer: one node of a net. Its life has three stages, each called once or more in this order:
//
//   InferShape          checks the config against the shapes of its inputs; says the output's
//                       shape, parameters, FLOPs.
//   Setup               layouts are known: creates every primitive, says what memory it needs and
//                       for how long.
//   Forward / Backward  run. They allocate nothing, create nothing and cannot fail.
//
// Who owns what: the net owns all memory (activations, gradients, state, scratch) and hands out
// pointers; the arena owns parameters; a layer owns its primitives, its config and numbers. No
// oneDNN type appears here.
// Vocabulary: src -> layer -> dst; diff_dst -> layer -> diff_src. Shapes (N, C, H, W) and element
// types: layers/blob.h. Gradients are sums over the samples of the batch, not means (the optimizer
// divides). The layers that read a blob are its consumers.
// Thread-safety: the trainer thread only. Layers run parallel loops through core/parallel_for.h or
// oneDNN.
#ifndef RINGTAIL_LAYERS_LAYER_H_
#define RINGTAIL_LAYERS_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/config/field_check.h"
#include "core/parameter.h"
#include "core/random.h"
#include "core/status.h"
#include "layers/activation.h"
#include "layers/algorithm_choices.h"
#include "layers/blob.h"
#include "layers/fusion.h"
#include "layers/step_context.h"

namespace ringtail {

class LayerConfig;
class InitializerConfig;

// A parameter as its layer wants it: what it is and how it starts.
struct ParameterRequest {
  ParameterSpec spec;  // name: "weight", "bias", "running_mean"; the net prepends "<layer>."
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
  std::span<const BlobDesc> src;  // with layouts and types
  BlobType dst_type = BlobType::kF32;
  // Whether operands of products may be rounded to bf16 though dst is f32: outside the
  // ThroughF32Layer that calls, dst is bf16.
  bool may_round_operands = false;
  // As requested, in that order; valid while the layer lives.
  std::span<const Parameter* const> parameters;
  bool training = true;  // false: Backward will never be called
  bool allocate = true;  // false: it will never run, and `parameters` are only shapes
  std::span<const bool> needs_diff_src;  // per src: whether parameters lie upstream of it
  // For layers that choose between algorithms (null: nothing is known, and nothing is remembered),
  // and whether to measure what is not known.
  AlgorithmChoices* algorithms = nullptr;
  bool measure = true;
  FusionOffer fusion;  // optional: layers/fusion.h
};

// What Setup decides. Bytes are for one step; the net shares memory between layers where lifetimes
// allow.
struct LayerPlan {
  // With the layout that the layer writes and the type that it was asked for; diff_dst comes in the
  // same layout and type, diff_src[i] is wanted in those of src[i].
  BlobDesc dst;
  size_t state_bytes = 0;  // written by Forward, read by the matching Backward (masks, statistics)
  size_t scratch_bytes = 0;  // during one call only
  bool backward_needs_src = false;
  bool backward_needs_dst = false;
  bool forward_in_place = false;   // dst may be the same memory as src[0] (same layout)
  bool backward_in_place = false;  // diff_src[0] may be the same memory as diff_dst (same layout)
  bool recomputable = false;       // Recompute can write dst again, from src and state
  FusionPlan fusion;               // optional: layers/fusion.h
};

// Blobs are float* here, and hold what their type says (layers/element_types/blob_elements.h).
struct ForwardArgs {
  std::span<const float* const> src;
  float* dst = nullptr;
  std::byte* state = nullptr;    // 64-byte aligned
  std::byte* scratch = nullptr;  // 64-byte aligned
  const StepContext* step = nullptr;
  ForwardFusion fusion;
};

struct BackwardArgs {
  std::span<const float* const> src;  // null entries unless backward_needs_src
  const float* dst = nullptr;         // null unless backward_needs_dst
  float* diff_dst = nullptr;          // the layer may overwrite it: no other reads it later
  std::span<float* const> diff_src;   // to be overwritten; null where not needed
  std::byte* state = nullptr;
  std::byte* scratch = nullptr;
  const StepContext* step = nullptr;
  BackwardFusion fusion;
  // Parameter gradients are overwritten in parameters[i]->grad().
};

class Layer {
 public:
  virtual ~Layer() = default;

  // InvalidArgument, without the layer's name (the net adds name and place), if the config does not
  // fit; failed_field() then says which field of it. Every size is checked against overflow: no
  // dimension above 2^31, no blob above 2^40 bytes.
  virtual StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) = 0;
  // The field of the layer's config that InferShape refused: "epsilon"; "": no one field.
  const std::string& failed_field() const { return failed_field_; }

  // True if the layer fuses the activation: it then writes act(dst), and the net drops the
  // activation's own layer.
  virtual bool FuseActivation(Activation) { return false; }

  // Whether the layer computes on blobs of these types; on f32 alone every layer does. Where it does
  // not, a ThroughF32Layer stands before it (layers/element_types/through_f32_layer.h).
  virtual bool RunsOn(std::span<const BlobType> src, BlobType dst) const {
    return dst == BlobType::kF32 && AllAre(src, BlobType::kF32);
  }

  virtual StatusOr<LayerPlan> Setup(const SetupArgs& args) = 0;
  virtual void Forward(const ForwardArgs& args) = 0;
  virtual void Backward(const BackwardArgs& args) = 0;

  // Writes the dst of the last Forward again, bit for bit, from src and state (scratch is null);
  // changes nothing else. Called only if the plan says `recomputable`: then dst need not be kept
  // from forward to backward.
  virtual void Recompute(const ForwardArgs&) { RT_CHECK(false, "this layer is not recomputable"); }

  // Null unless the layer is a batch norm whose neighbours can share its work.
  virtual const FusedNormalization* normalization() const { return nullptr; }

  // What Setup chose, for `time` and `summary`: "jit:avx512_core", "ringtail:avx2".
  // Empty: nothing to say.
  virtual std::string Implementation() const { return {}; }
  // For `time` and `summary`, too: what was measured for Setup's choices. Empty: no choice.
  virtual std::vector<AlgorithmTimings> Timings() const { return {}; }

 protected:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  static bool AllAre(std::span<const BlobType> types, BlobType type) {
    for (const BlobType t : types) {
      if (t != type) return false;
    }
    return true;
  }

  // For InferShape to check its config with.
  FieldCheck fields() { return FieldCheck(&failed_field_); }

 private:
  std::string failed_field_;
};

// Creates the layer that `config` describes (layers/net/factory.cc has the list). The layer keeps a
// copy of what it needs of `config`. InvalidArgument if no kind is set; Internal if it is a
// composite (expand first). `key` is unique to the layer within the net: random masks are drawn
// from it.
StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerConfig& config, uint64_t key);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LAYER_H_
