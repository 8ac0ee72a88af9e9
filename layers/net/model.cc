#include "layers/net/model.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/machine/memory_limit.h"
#include "layers/net.pb.h"
#include "layers/net/depth.h"
#include "layers/net/graph.h"
#include "layers/net/initializer.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxInputChannels = 4096;
constexpr int64_t kBlocks = 2;  // weights and gradients

// Called before the next addition could overflow: one parameter is at most kMaxBlobBytes + 1.
Status CheckParameterBytes(int64_t bytes) {
  if (bytes <= kMaxBlobBytes) return OkStatus();
  return InvalidArgument(fmt::format("the parameters need more than {} GiB", kMaxBlobBytes >> 30));
}

// The place in the config of a field of the node's layer; "": of the layer. (For a layer that a
// composite made, the composite's place is the nearest in the file.)
std::string PlaceOf(const Node& node, const std::string& field) {
  return field.empty() ? node.origin
                       : fmt::format("{}.{}.{}", node.origin, KindName(*node.config), field);
}

// Divides the layers that `shards` names. InvalidArgument if one is no linear layer.
Status ShardLayers(const ShardRequest& shards, Graph* graph) {
  if (shards.shard.is_whole()) return OkStatus();
  for (const std::string& name : shards.layers) {
    int node = 0;
    while (node < graph->size() && graph->nodes()[node].name != name) ++node;
    if (node == graph->size() || !graph->nodes()[node].config->has_linear()) {
      return InvalidArgument(fmt::format(
          "'{}' is no linear layer of the net; ranks divide linear layers alone", name));
    }
    graph->Shard(node, shards.shard);
  }
  return OkStatus();
}

// Of a list by node of a net of `size` nodes: the entries of a stage's, with `end` for its ends.
template <typename T>
void KeepStage(const StageRequest& stage, int size, const T& end, std::vector<T>* by_node) {
  std::vector<T> kept;
  if (stage.first > 0) kept.push_back(end);
  for (int i = stage.first; i <= stage.last; ++i) kept.push_back(std::move((*by_node)[i]));
  if (stage.last + 1 < size) kept.push_back(end);
  *by_node = std::move(kept);
}

}  // namespace

struct Model::Start {
  ParameterRequest request;
  std::unique_ptr<InitializerConfig> init;  // the request's, which outlives the layer
  const Parameter* parameter = nullptr;
  bool is_fixed = false;
};

Model::Start Model::MakeStart(const ParameterRequest& request) {
  Start start{.request = request, .init = nullptr};
  if (request.init != nullptr) {
    start.init = std::make_unique<InitializerConfig>(*request.init);
    start.request.init = start.init.get();
  }
  return start;
}

Model::Model() = default;
Model::~Model() = default;

StatusOr<std::vector<ShapeInfo>> InferShapes(const Graph& graph, const BlobDesc& images,
                                             std::span<const std::unique_ptr<Layer>> layers,
                                             int* failed) {
  std::vector<ShapeInfo> shapes;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes()[i];
    *failed = i;
    std::vector<BlobDesc> src;
    for (const int input : node.inputs)
      src.push_back(input == kImagesInput ? images : shapes[input].dst);
    auto info = layers[i]->InferShape(src);
    RT_RETURN_IF_ERROR(info.status().Annotate(fmt::format("layer '{}'", node.name)));
    shapes.push_back(*std::move(info));
  }
  return shapes;
}

StatusOr<std::unique_ptr<Model>> Model::Create(const NetConfig& config, int64_t image_size,
                                               const ConfigSource* source, std::string_view path,
                                               bool allocate, const FreezeRequest& freeze,
                                               const ShardRequest& shards,
                                               const StageRequest& stage) {
  const auto at = [&](const std::string& place, const Status& status) {
    if (source == nullptr) return status;
    return source->Error(place.empty() ? path : fmt::format("{}.{}", path, place),
                         status.message());
  };
  if (config.input_channels() < 1 || config.input_channels() > kMaxInputChannels) {
    return at("input_channels",
              InvalidArgument(fmt::format("input_channels is {}; it must be 1 to {}",
                                          config.input_channels(), kMaxInputChannels)));
  }
  std::string origin;
  auto graph = Graph::Build(config, &origin);
  if (!graph.ok()) return at(origin, graph.status());

  std::unique_ptr<Model> model(new Model);
  model->graph_ = std::make_unique<Graph>(*std::move(graph));
  const Status divided = ShardLayers(shards, model->graph_.get());
  if (!divided.ok()) {
    return source == nullptr ? divided
                             : source->Error("dist.model_parallel.layer", divided.message());
  }
  model->input_channels_ = config.input_channels();
  const std::vector<Node>& nodes = model->graph_->nodes();

  std::vector<std::unique_ptr<Layer>> layers;
  for (const Node& node : nodes) {
    auto layer = node.Instantiate();
    if (!layer.ok()) return at(node.origin, layer.status());
    layers.push_back(*std::move(layer));
  }
  int failed = 0;
  const BlobDesc images{1, config.input_channels(), image_size, image_size};
  auto shapes = InferShapes(*model->graph_, images, layers, &failed);
  if (!shapes.ok()) {
    return at(PlaceOf(nodes[failed], layers[failed]->failed_field()), shapes.status());
  }
  model->num_classes_ = (*shapes)[model->graph_->logits()].dst.C;

  std::vector<int> depths = DepthsOf(*model->graph_, *shapes);
  auto frozen = FrozenNodes(*model->graph_, *shapes, freeze.layers);
  if (!frozen.ok()) {
    return source == nullptr ? frozen.status()
                             : source->Error(freeze.field, frozen.status().message());
  }

  if (!stage.is_whole()) {
    RT_ASSIGN_OR_RETURN(model->whole_, Create(config, image_size, source, path, /*allocate=*/false,
                                              freeze, shards));
    model->stage_ = stage;
    const int size = model->graph_->size();
    RT_RETURN_IF_ERROR(model->graph_->CutTo(stage));
    KeepStage(stage, size, {}, &*shapes);
    KeepStage(stage, size, 0, &depths);
    KeepStage(stage, size, false, &*frozen);
  }

  std::vector<ParameterSpec> parameters, buffers;
  FixedSpecs fixed;
  int64_t bytes = 0;
  for (int i = model->graph_->size() - 1; i >= 0; --i) {
    for (ParameterRequest& request : (*shapes)[i].parameters) {
      std::string field;
      const Status valid = ValidateInitializer(request, FieldCheck(&field));
      if (!valid.ok())
        return at(PlaceOf(nodes[i], field),
                  valid.Annotate(fmt::format("layer '{}'", nodes[i].name)));
      request.spec.name = nodes[i].name + "." + request.spec.name;
      bytes += SaturatingProduct(NumElements(request.spec.shape), sizeof(float));
      const Status countable = CheckParameterBytes(bytes);
      if (!countable.ok()) return at(nodes[i].origin, countable);
      request.spec.depth = depths[i];
      if ((*frozen)[i] && request.spec.is_sharded()) {
        return at(nodes[i].origin,
                  InvalidArgument(fmt::format("layer '{}' is frozen and cannot be divided among "
                                              "ranks; leave it out of dist.model_parallel.layer",
                                              nodes[i].name)));
      }
      if ((*frozen)[i]) {
        (request.is_buffer ? fixed.buffers : fixed.parameters).push_back(request.spec);
      } else {
        (request.is_buffer ? buffers : parameters).push_back(request.spec);
      }
      model->starts_.push_back(MakeStart(request));
      model->starts_.back().is_fixed = (*frozen)[i];
    }
  }
  if (allocate) {
    const Status fits = CheckMemoryAvailable(kBlocks * bytes, "the net with its gradients");
    if (!fits.ok()) return at("", fits);
    RT_ASSIGN_OR_RETURN(
        model->arena_,
        ParameterArena::Create(std::move(parameters), std::move(buffers), std::move(fixed)));
  }
  model->PlaceParameters(*shapes);
  return model;
}

int64_t Model::CountParameters() const {
  int64_t count = 0;
  for (const Start& start : starts_) {
    if (!start.request.is_buffer) count += NumElements(start.request.spec.shape);
  }
  return count;
}

int Model::head() const {
  int node = graph_->size() - 1;
  while (node >= 0 && by_node_[node].empty()) --node;
  return node;
}

ParameterArena& Model::arena() const {
  RT_CHECK(is_allocated(), "the model was made without memory");
  return *arena_;
}

// Gives every request its parameter, in the order in which the arena got them: last layer first.
void Model::PlaceParameters(std::span<const ShapeInfo> shapes) {
  if (!is_allocated()) {
    for (const Start& start : starts_) {
      unallocated_.push_back({.spec = start.request.spec,
                              .elements = NumElements(start.request.spec.shape),
                              .is_buffer = start.request.is_buffer,
                              .is_fixed = start.is_fixed});
    }
  }
  by_node_.resize(graph_->size());
  size_t start = 0, parameter = 0, sharded = 0, buffer = 0, fixed_parameter = 0, fixed_buffer = 0;
  if (is_allocated()) {  // buffers stand behind the parameters of what is fixed
    for (const Start& s : starts_) fixed_buffer += s.is_fixed && !s.request.is_buffer ? 1 : 0;
  }
  for (int i = graph_->size() - 1; i >= 0; --i) {
    for (size_t j = 0; j < shapes[i].parameters.size(); ++j, ++start) {
      Start& s = starts_[start];
      if (!is_allocated()) {
        s.parameter = &unallocated_[start];
      } else if (s.is_fixed) {
        s.parameter = &arena_->fixed()[s.request.is_buffer ? fixed_buffer++ : fixed_parameter++];
      } else if (s.request.spec.is_sharded()) {
        s.parameter = &arena_->sharded()[sharded++];
      } else {
        s.parameter =
            s.request.is_buffer ? &arena_->buffers()[buffer++] : &arena_->parameters()[parameter++];
      }
      by_node_[i].push_back(s.parameter);
    }
  }
}

void Model::Initialize(uint64_t seed) {
  const RngKey key = RngKey(seed).With(kInitStream);
  for (const Start& start : starts_) {
    FillInitial(start.request, key.With(start.request.spec.name), start.parameter->value());
  }
}

}  // namespace ringtail
