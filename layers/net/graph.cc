#include "layers/net/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "layers/linear/sharded_linear.h"
#include "layers/net.pb.h"
#include "layers/net/cut_points.h"
#include "layers/pipeline/boundary_layers.h"

namespace ringtail {
namespace {

Activation FusableActivation(const LayerConfig& layer) {
  if (layer.has_relu()) return Activation::kRelu;
  if (layer.has_relu6()) return Activation::kRelu6;
  return Activation::kNone;
}

std::unordered_map<std::string, int> CountUses(
    const std::vector<std::unique_ptr<ExpandedLayer>>& layers) {
  std::unordered_map<std::string, int> uses;
  for (const auto& layer : layers) {
    for (const std::string& input : layer->config.input()) ++uses[input];
  }
  return uses;
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

StatusOr<std::unique_ptr<Layer>> Node::Instantiate() const {
  std::unique_ptr<Layer> layer;
  if (end == End::kReceives) return std::unique_ptr<Layer>(new ReceiveLayer(wire));
  if (end == End::kSends) return std::unique_ptr<Layer>(new SendLayer(wire));
  if (shard.is_whole()) {
    RT_ASSIGN_OR_RETURN(layer, CreateLayer(*config, RngKey(0).With(name).bits()));
  } else {
    layer = std::make_unique<ShardedLinearLayer>(config->linear(), shard);
  }
  if (fused != Activation::kNone) {
    RT_CHECK(layer->FuseActivation(fused), "a layer that fused once must fuse again");
  }
  return layer;
}

StatusOr<Graph> Graph::Build(const NetConfig& config, std::string* error_origin) {
  Graph graph;
  RT_ASSIGN_OR_RETURN(std::vector<ExpandedLayer> expanded, ExpandLayers(config, error_origin));
  if (expanded.empty()) return InvalidArgument("the net has no layers");
  for (ExpandedLayer& layer : expanded) {
    graph.layers_.push_back(std::make_unique<ExpandedLayer>(std::move(layer)));
  }
  const auto uses = CountUses(graph.layers_);
  std::unordered_map<std::string, int> index = {{kImages, kImagesInput}};
  for (size_t i = 0; i < graph.layers_.size(); ++i) {
    const ExpandedLayer& layer = *graph.layers_[i];
    const std::string& name = layer.config.name();
    *error_origin = layer.origin;
    const bool is_last = i + 1 == graph.layers_.size();
    if (is_last != layer.config.has_softmax_cross_entropy()) {
      return InvalidArgument(
          is_last ? fmt::format("layer '{}' is the last, but no loss; end the net with "
                                "softmax_cross_entropy {{}}",
                                name)
                  : fmt::format("layer '{}' is a loss, but not the last layer", name));
    }
    if (!is_last && !uses.contains(name)) {
      return InvalidArgument(fmt::format("no layer reads the output of layer '{}'", name));
    }
    const int producer = index.at(layer.config.input(0));
    const Activation activation = FusableActivation(layer.config);
    if (activation != Activation::kNone && producer != kImagesInput &&
        layer.config.input_size() == 1 && uses.at(layer.config.input(0)) == 1 &&
        graph.nodes_[producer].fused == Activation::kNone) {
      Node& node = graph.nodes_[producer];
      RT_ASSIGN_OR_RETURN(const std::unique_ptr<Layer> probe, node.Instantiate());
      if (probe->FuseActivation(activation)) {
        node.fused = activation;
        node.kind += "+" + KindName(layer.config);
        index[name] = producer;
        continue;
      }
    }
    Node node{.config = &layer.config,
              .name = name,
              .kind = KindName(layer.config),
              .origin = layer.origin};
    for (const std::string& input : layer.config.input()) {
      node.inputs.push_back(index.at(input));
      if (node.inputs.back() != kImagesInput) ++graph.nodes_[node.inputs.back()].uses;
    }
    RT_RETURN_IF_ERROR(node.Instantiate().status().Annotate(fmt::format("layer '{}'", name)));
    index[name] = graph.size();
    graph.nodes_.push_back(std::move(node));
  }
  error_origin->clear();
  return graph;
}

Status Graph::CutTo(const StageRequest& stage) {
  const std::vector<int> cuts = NodesToCutAfter(*this);
  const auto may_cut_after = [&](int node) { return std::ranges::count(cuts, node) > 0; };
  RT_CHECK(stage.first >= 0 && stage.first <= stage.last && stage.last < size(),
           "a stage is a run of nodes");
  const bool receives = stage.first > 0, sends = stage.last + 1 < size();
  for (const int node : {stage.first - 1, stage.last}) {
    if (node < 0 || node + 1 == size() || may_cut_after(node)) continue;
    return InvalidArgument(fmt::format(
        "the net cannot be cut after layer '{}': more than one blob crosses", nodes_[node].name));
  }
  end_config_ = std::make_unique<LayerConfig>();
  std::vector<Node> nodes;
  const auto add_end = [&](Node::End end, const char* name, const char* kind, int input) {
    nodes.push_back({.config = end_config_.get(),
                     .name = name,
                     .kind = kind,
                     .inputs = {input},
                     .end = end,
                     .wire = stage.wire});
  };
  if (receives) {
    add_end(Node::End::kReceives, "(received)", "receive", kImagesInput);
    nodes.back().uses = nodes_[stage.first - 1].uses;
  }
  const int shift = receives ? stage.first - 1 : 0;  // what is received stands for the node before
  for (int i = stage.first; i <= stage.last; ++i) {
    nodes.push_back(nodes_[i]);
    for (int& input : nodes.back().inputs) input = input == kImagesInput ? input : input - shift;
  }
  if (sends) {
    nodes.back().uses = 1;
    add_end(Node::End::kSends, "(sent)", "send", stage.last - shift);
  }
  nodes_ = std::move(nodes);
  return OkStatus();
}

}  // namespace ringtail
