// Graph: the nodes of a net in topological order, after expansion and fusion.
//
// Fusion: where a ReLU or ReLU6 is the only consumer of a layer that can apply it while it writes
// its output (Layer::FuseActivation), the two become one node: one pass over memory less each way.
// Thread-safety: immutable after Build, Shard and CutTo.
#ifndef RINGTAIL_LAYERS_NET_GRAPH_H_
#define RINGTAIL_LAYERS_NET_GRAPH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "layers/layer.h"
#include "layers/linear/linear_shard.h"
#include "layers/net/expand.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

inline constexpr int kImagesInput = -1;  // as an input: the net's images

struct Node {
  const LayerConfig* config = nullptr;  // owned by the Graph
  std::string name, kind, origin;       // kind: "convolution", "batch_norm+relu6"
  std::vector<int> inputs;              // earlier nodes or kImagesInput
  int uses = 0;                         // how often it is an input of others
  Activation fused = Activation::kNone;
  LinearShard shard;  // of a linear layer that ranks divide
  // Of a stage (layers/pipeline/stage.h): takes what the one before has sent, or hands on to the next.
  enum class End { kNone, kReceives, kSends } end = End::kNone;
  std::optional<BlobType> wire;  // of an end

  // A fresh layer for this node, the activation fused.
  StatusOr<std::unique_ptr<Layer>> Instantiate() const;
};

class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // InvalidArgument if an input of a layer does not exist, an output has no consumer, or the last
  // layer is no loss; `error_origin` is then the place in the config.
  static StatusOr<Graph> Build(const NetConfig& config, std::string* error_origin);

  const std::vector<Node>& nodes() const { return nodes_; }
  // Divides a linear layer among ranks, before its layers are made.
  void Shard(int node, const LinearShard& shard) { nodes_[node].shard = shard; }
  // Leaves the nodes of a stage alone, and its ends before and behind them. Indices change: `first` becomes
  // 1, or stays 0. InvalidArgument if the net cannot be cut there.
  Status CutTo(const StageRequest& stage);
  int size() const { return static_cast<int>(nodes_.size()); }
  bool has_loss() const { return nodes_.back().end == Node::End::kNone; }
  int logits() const { return nodes_.back().inputs[0]; }  // the input of the loss

 private:
  std::vector<std::unique_ptr<ExpandedLayer>>
      layers_;  // stable addresses: nodes point to the configs
  std::vector<Node> nodes_;
  std::unique_ptr<LayerConfig> end_config_;  // of the ends, which have no config: it is empty
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_GRAPH_H_
