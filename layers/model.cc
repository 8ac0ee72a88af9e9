#include "layers/model.h"

#include <fmt/core.h>

#include "core/memory_limit.h"
#include "layers/graph.h"
#include "layers/initializer.h"
#include "layers/net.pb.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxInputChannels = 4096;
constexpr int64_t kBlocks = 2;  // weights and gradients

// Before the next addition could overflow: one parameter is at most kMaxBlobBytes + 1.
Status CheckParameterBytes(int64_t bytes) {
  if (bytes <= kMaxBlobBytes) return OkStatus();
  return InvalidArgument(fmt::format("the parameters need more than {} GiB", kMaxBlobBytes >> 30));
}

}  // namespace

struct Model::Start {
  ParameterRequest request;
  const Parameter* parameter = nullptr;
};

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
                                               const ConfigSource* source, std::string_view path) {
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
  if (!shapes.ok()) return at(nodes[failed].origin, shapes.status());
  model->num_classes_ = (*shapes)[model->graph_->logits()].dst.C;

  std::vector<ParameterSpec> parameters, buffers;
  int64_t bytes = 0;
  for (int i = model->graph_->size() - 1; i >= 0; --i) {
    for (ParameterRequest& request : (*shapes)[i].parameters) {
      const Status valid = ValidateInitializer(request);
      if (!valid.ok())
        return at(nodes[i].origin, valid.Annotate(fmt::format("layer '{}'", nodes[i].name)));
      request.spec.name = nodes[i].name + "." + request.spec.name;
      bytes += SaturatingProduct(NumElements(request.spec.shape), sizeof(float));
      const Status countable = CheckParameterBytes(bytes);
      if (!countable.ok()) return at(nodes[i].origin, countable);
      (request.is_buffer ? buffers : parameters).push_back(request.spec);
      model->starts_.push_back({.request = request, .parameter = nullptr});
    }
  }
  const Status fits = CheckMemoryAvailable(kBlocks * bytes, "the net's weights and gradients");
  if (!fits.ok()) return at("", fits);
  RT_ASSIGN_OR_RETURN(model->arena_,
                      ParameterArena::Create(std::move(parameters), std::move(buffers)));

  model->by_node_.resize(nodes.size());
  size_t start = 0;
  for (int i = model->graph_->size() - 1; i >= 0; --i) {
    for (size_t j = 0; j < (*shapes)[i].parameters.size(); ++j, ++start) {
      Start& s = model->starts_[start];
      s.parameter = s.request.is_buffer ? model->arena_->FindBuffer(s.request.spec.name)
                                        : model->arena_->FindParameter(s.request.spec.name);
      model->by_node_[i].push_back(s.parameter);
    }
  }
  return model;
}

void Model::Initialize(uint64_t seed) {
  const RngKey key = RngKey(seed).With(kInitStream);
  for (const Start& start : starts_) {
    FillInitial(start.request, key.With(start.request.spec.name), start.parameter->value());
  }
}

}  // namespace ringtail
