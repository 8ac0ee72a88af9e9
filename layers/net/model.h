// Model: what a config determines for every batch size: the graph, its parameters and their start.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_NET_MODEL_H_
#define RINGTAIL_LAYERS_NET_MODEL_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/text_config.h"
#include "core/parameter.h"
#include "core/status.h"
#include "layers/layer.h"
#include "layers/linear/linear_shard.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

class NetConfig;
class Graph;

// Layers whose weights and running statistics stay as they are (layers/net/depth.h: FrozenNodes).
struct FreezeRequest {
  std::span<const std::string> layers;
  std::string_view field;  // of the config, for messages: "train.freeze"
};

// Linear layers of which this rank holds some outputs alone (layers/linear/README.md). `layers` are
// linear layers that are not frozen; nets of the model then need StepContext::shards.
struct ShardRequest {
  LinearShard shard;  // of one rank: nothing is divided
  std::vector<std::string> layers;
};

class Model {
 public:
  // Expands composites, checks names, inputs and shapes (for square images of `image_size`
  // pixels), and places the parameters, in the order in which backward produces their gradients:
  // last layer first. Errors name the layer, and point at the field that is wrong in the config
  // file, or at the layer, through `source` and `path`.
  // Without `allocate` the parameters have shapes, but no values, and there is no arena: for Nets
  // that are planned alone (NetOptions), however large.
  // Of a `stage` the model has the nodes alone, between its ends (Graph::CutTo); shapes, depths and starts
  // are those of the whole net. InvalidArgument if the net cannot be cut there.
  // What `freeze` names is fixed in the arena: it has no gradient, and a Net of this model computes
  // it as in evaluation and ends backward above it.
  static StatusOr<std::unique_ptr<Model>> Create(
      const NetConfig& config, int64_t image_size, const ConfigSource* source = nullptr,
      std::string_view path = "net", bool allocate = true, const FreezeRequest& freeze = {},
      const ShardRequest& shards = {}, const StageRequest& stage = {});
  ~Model();

  // Sets every parameter and buffer to its start, a function of (seed, name) alone.
  void Initialize(uint64_t seed);

  ParameterArena& arena() const;
  bool is_allocated() const { return arena_ != nullptr; }
  const Graph& graph() const { return *graph_; }
  // What nets of this model store activations in, as far as layers and logits allow (DstTypes in
  // layers/net/precision.h). Of nets made from then on; f32 until it is set.
  void set_blob_type(BlobType type) {
    blob_type_ = type;
    if (whole_) whole_->set_blob_type(type);
  }
  BlobType blob_type() const { return blob_type_; }
  int64_t input_channels() const { return input_channels_; }
  int64_t CountParameters() const;  // elements, without buffers; allocated or not
  int64_t num_classes() const { return num_classes_; }  // columns of the logits
  // Parameters and buffers of graph node i, in the layer's order.
  std::span<const Parameter* const> parameters(int node) const { return by_node_[node]; }
  // Of a stage: the net that it is cut from, without memory, and which of its nodes it is; null: the
  // model is whole.
  Model* whole() const { return whole_.get(); }
  const StageRequest& stage() const { return stage_; }
  int head() const;  // the last node with parameters; -1: none
  bool IsFrozen(int node) const { return !by_node_[node].empty() && by_node_[node][0]->is_fixed; }

 private:
  Model();
  struct Start;  // how one parameter is initialized
  static Start MakeStart(const ParameterRequest& request);
  void PlaceParameters(std::span<const ShapeInfo> shapes);
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<ParameterArena> arena_;
  std::vector<Parameter> unallocated_;  // in place of the arena's
  std::vector<Start> starts_;
  std::vector<std::vector<const Parameter*>> by_node_;
  int64_t input_channels_ = 0, num_classes_ = 0;
  BlobType blob_type_ = BlobType::kF32;
  std::unique_ptr<Model> whole_;
  StageRequest stage_;
};

// Infers the shapes of all nodes for a batch; layers[i] is node i's. Fails with the node's name;
// `failed` is its index.
StatusOr<std::vector<ShapeInfo>> InferShapes(const Graph& graph, const BlobDesc& images,
                                             std::span<const std::unique_ptr<Layer>> layers,
                                             int* failed);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_MODEL_H_
