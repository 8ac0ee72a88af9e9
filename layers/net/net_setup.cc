// Makes a net: sets its layers up for a batch, plans their memory, and hands out the addresses.
#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"
#include "core/machine/memory_limit.h"
#include "layers/net/feature_map.h"
#include "layers/net/graph.h"
#include "layers/net/net_impl.h"
#include "layers/net/precision.h"

namespace ringtail {
namespace {

// The model made its parameters for images of one size; a linear layer after a flatten has
// others for another size.
Status CheckParameters(std::span<const Parameter* const> parameters, const ShapeInfo& wanted) {
  for (size_t i = 0; i < wanted.parameters.size(); ++i) {
    const Shape &have = parameters[i]->spec.shape, &want = wanted.parameters[i].spec.shape;
    if (have == want) continue;
    return InvalidArgument(fmt::format("'{}' is {}, but {} for images of this size",
                                       parameters[i]->spec.name, ShapeString(have),
                                       ShapeString(want)));
  }
  return OkStatus();
}

// All but the fields that depend on whether it learns.
LayerInfo DescribeLayer(const Node& node, const Layer& layer, const ShapeInfo& shape,
                        const LayerPlan& plan, std::span<const BlobDesc> src) {
  LayerInfo info{.name = node.name,
                 .kind = node.kind,
                 .implementation = layer.Implementation(),
                 .timings = layer.Timings(),
                 .dst = plan.dst,
                 .parameters = 0,
                 .forward_flops = shape.forward_flops};
  for (const ParameterRequest& p : shape.parameters) {
    if (!p.is_buffer) info.parameters += NumElements(p.spec.shape);
  }
  info.traffic_bytes = plan.dst.bytes() + info.parameters * static_cast<int64_t>(sizeof(float));
  for (const BlobDesc& desc : src) info.traffic_bytes += desc.bytes();
  return info;
}

}  // namespace

Net::Net() : impl_(std::make_unique<Impl>()) {}
Net::~Net() = default;

StatusOr<std::unique_ptr<Net>> Net::Create(Model* model, const NetOptions& options) {
  if (options.batch < 1)
    return InvalidArgument(fmt::format("batch is {}; it must be at least 1", options.batch));
  std::unique_ptr<Net> net(new Net);
  net->impl_->model = model;
  net->impl_->options = options;
  RT_CHECK(!options.training || !options.feature_map, "a feature map is kept in evaluation");
  RT_RETURN_IF_ERROR(net->impl_->Build());
  return net;
}

std::byte* WorkMemory::Take(int64_t bytes) {
  if (block_.size_bytes() == 0) block_ = AlignedBuffer(bytes);
  RT_CHECK(static_cast<int64_t>(block_.size_bytes()) == bytes, "nets that share have one plan");
  return block_.data();
}

std::byte* Net::Impl::Address(int64_t offset) {
  return offset < planned_bytes || work == nullptr ? block.data() + offset
                                                   : work + (offset - planned_bytes);
}

Status Net::Impl::Build() {
  RT_ASSIGN_OR_RETURN(needs, SetUpLayers());
  const NetMemory memory = PlanNetMemory(needs, {.training = has_backward(),
                                                 .recompute = options.recompute,
                                                 .defer = options.defer,
                                                 .apart = options.work != nullptr});
  planned_bytes = options.work != nullptr ? memory.kept_bytes : memory.total_bytes;
  if (options.plan_only) return OkStatus();
  RT_CHECK(model->is_allocated(), "a net that is to run needs weights");
  RT_RETURN_IF_ERROR(CheckMemoryAvailable(
      memory.total_bytes, fmt::format("a batch of {} images of {}x{}", options.batch,
                                      options.image_size, options.image_size)));
  block = AlignedBuffer(planned_bytes);
  if (options.work != nullptr) work = options.work->Take(memory.work_bytes());
  Bind(memory, needs);
  if (model->graph().has_loss()) logits.resize(options.batch * model->num_classes());
  if (feature_node != kNoNode) MakeFeatureMap();
  return OkStatus();
}

// What a stage receives, as the net that it is cut from would have it there. Layouts do not depend on
// which algorithms were measured, so nothing is.
Status Net::Impl::PlanReceived(BlobDesc* images) {
  Model* const whole = model->whole();
  if (whole == nullptr || model->stage().first == 0) return OkStatus();
  NetOptions planned = options;
  planned.plan_only = true;
  RT_ASSIGN_OR_RETURN(const auto net, Net::Create(whole, planned));
  const int before = model->stage().first - 1;
  *images = net->layers()[before].dst;
  boundaries.received = *images;
  boundaries.gradient_sent = options.training && net->needs()[before].learns;
  return OkStatus();
}

// In the type of the wire.
void Net::Impl::DescribeBoundaries(std::span<const NodeNeeds> needs) {
  if (!model->graph().has_loss()) {
    const int last = model->graph().size() - 2;
    boundaries.sent = needs[last].plan.dst;
    boundaries.gradient_received = options.training && needs[last].learns;
  }
  if (!model->stage().wire) return;
  for (std::optional<BlobDesc>* blob : {&boundaries.received, &boundaries.sent}) {
    if (*blob && (*blob)->type == BlobType::kF32) **blob = (*blob)->As(*model->stage().wire);
  }
}

// Instantiates every layer for this batch, layouts flowing from the images to the loss.
StatusOr<std::vector<NodeNeeds>> Net::Impl::SetUpLayers() {
  const Graph& graph = model->graph();
  BlobDesc images{options.batch, model->input_channels(), options.image_size, options.image_size};
  RT_RETURN_IF_ERROR(PlanReceived(&images));
  std::vector<std::unique_ptr<Layer>> layers;
  for (const Node& node : graph.nodes()) {
    RT_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, node.Instantiate());
    layers.push_back(std::move(layer));
  }
  int failed = 0;
  RT_ASSIGN_OR_RETURN(const std::vector<ShapeInfo> shapes,
                      InferShapes(graph, images, layers, &failed));

  if (options.feature_map) {
    RT_ASSIGN_OR_RETURN(feature_node, FindFeatureMap(graph, shapes, *options.feature_map));
  }
  const std::vector<BlobType> types = DstTypes(*model);
  const std::vector<bool> through_f32 = PutThroughF32(graph, types, layers);
  std::vector<NodeNeeds> needs;
  Status status;
  for (int i = 0; i < graph.size() && status.ok(); ++i) {
    status = SetUpLayer(i, images, shapes[i], types[i], layers, &needs)
                 .Annotate(fmt::format("layer '{}'", graph.nodes()[i].name));
    if (status.ok()) infos.back().through_f32 = through_f32[i];
  }
  if (options.algorithms != nullptr) options.algorithms->Save();  // even after an error, or a stop
  RT_RETURN_IF_ERROR(Status(status));
  DescribeBoundaries(needs);
  return needs;
}

// Layer i, after those in `needs`, to which its own are added.
Status Net::Impl::SetUpLayer(int i, const BlobDesc& images, const ShapeInfo& shape,
                             BlobType dst_type, std::span<std::unique_ptr<Layer>> layers,
                             std::vector<NodeNeeds>* needs) {
  const Node& node = model->graph().nodes()[i];
  std::vector<BlobDesc> src;
  std::unique_ptr<bool[]> needs_diff_src(new bool[node.inputs.size()]);
  const bool frozen = model->IsFrozen(i);
  // Backward ends at the layers with parameters that come first, or behind the feature map, which is
  // not computed backward itself.
  const bool is_feature_map = i == feature_node;
  bool learns = feature_node != kNoNode ? is_feature_map : !model->parameters(i).empty() && !frozen;
  if (node.end == Node::End::kReceives) learns = boundaries.gradient_sent;
  for (size_t j = 0; j < node.inputs.size(); ++j) {
    const int input = node.inputs[j];
    src.push_back(input == kImagesInput ? images : (*needs)[input].plan.dst);
    needs_diff_src[j] = input != kImagesInput && (*needs)[input].learns;
    learns = learns || needs_diff_src[j];
  }
  if (feature_node != kNoNode && i > feature_node && learns && frozen) {
    return InvalidArgument("it is frozen, and a gradient has to pass through it; freeze nothing");
  }
  RT_RETURN_IF_ERROR(CheckParameters(model->parameters(i), shape));
  RT_ASSIGN_OR_RETURN(
      LayerPlan plan,
      layers[i]->Setup({.src = src,
                        .dst_type = dst_type,
                        .parameters = model->parameters(i),
                        .training = has_backward() && learns && !is_feature_map,
                        .allocate = !options.plan_only,
                        .needs_diff_src = {needs_diff_src.get(), node.inputs.size()},
                        .algorithms = options.algorithms,
                        .measure = options.measure && !options.plan_only,
                        .fusion = OfferFusion(i, *needs, layers)}));
  RT_CHECK(plan.dst.SameShape(shape.dst), "Setup must keep the shape that InferShape promised");
  RT_CHECK(plan.dst.type == dst_type, "Setup must keep the type that it was asked for");
  if (is_feature_map) plan.backward_needs_src = plan.backward_needs_dst = false;

  LayerInfo info = DescribeLayer(node, *layers[i], shape, plan, src);
  info.backward_flops = learns ? info.forward_flops * (needs_diff_src[0] ? 2 : 1) : 0;
  info.memory_bytes = plan.dst.bytes() * (has_backward() && learns ? 2 : 1) +
                      static_cast<int64_t>(plan.state_bytes);
  infos.push_back(std::move(info));
  needs->push_back({.inputs = node.inputs, .plan = plan, .learns = learns});
  nodes.push_back(
      {.layer = std::move(layers[i]), .dst_desc = plan.dst, .learns = learns, .frozen = frozen});
  return OkStatus();
}

FusionOffer Net::Impl::OfferFusion(int i, std::span<const NodeNeeds> needs,
                                   std::span<const std::unique_ptr<Layer>> layers) const {
  const std::vector<Node>& graph = model->graph().nodes();
  FusionOffer offer{.dst_is_normalized = IsNormalizedByOnlyConsumer(i, layers)};
  const int input = graph[i].inputs[0];
  if (input == kImagesInput) return offer;
  offer.src_is_affine = needs[input].plan.fusion.dst_is_affine && graph[input].uses == 1;
  offer.diff_src_is_sum = needs[input].learns && HasLaterConsumer(input, i);
  return offer;
}

bool Net::Impl::IsNormalizedByOnlyConsumer(int i,
                                           std::span<const std::unique_ptr<Layer>> layers) const {
  const std::vector<Node>& graph = model->graph().nodes();
  if (!options.training || !options.defer || graph[i].uses != 1 || model->IsFrozen(i)) return false;
  for (int consumer = i + 1; consumer < model->graph().size(); ++consumer) {
    if (graph[consumer].inputs[0] != i) continue;
    return layers[consumer]->normalization() != nullptr && !model->IsFrozen(consumer);
  }
  return false;  // it is another input of its consumer
}

// Whether a node after `consumer`, whose backward runs earlier, reads node i as well.
bool Net::Impl::HasLaterConsumer(int i, int consumer) const {
  const std::vector<Node>& graph = model->graph().nodes();
  return std::any_of(graph.begin() + consumer + 1, graph.end(), [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), i) != node.inputs.end();
  });
}

void Net::Impl::Bind(const NetMemory& memory, std::span<const NodeNeeds> needs) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    BindPointers(static_cast<int>(i), memory, needs[i]);
    const int input = needs[i].inputs[0];
    if (input == kImagesInput) continue;
    BindDeferred(&nodes[i], input, memory.nodes[input], needs[i].plan.fusion);
    BindNormalized(&nodes[i], input, memory.nodes[input], needs[input].plan.fusion);
  }
}

void Net::Impl::BindPointers(int i, const NetMemory& memory, const NodeNeeds& needs) {
  const auto at = [&](int64_t offset) {
    if (offset == kNoBuffer) return static_cast<std::byte*>(nullptr);
    return Address(offset);
  };
  const auto floats = [&](int64_t offset) { return reinterpret_cast<float*>(at(offset)); };
  ReadyNode& node = nodes[i];
  const NodePlacement& place = memory.nodes[i];
  node.dst = floats(place.dst);
  node.diff_dst = floats(place.diff_dst);
  node.state = at(place.state);
  node.forward_scratch = at(place.forward_scratch);
  node.backward_scratch = at(place.backward_scratch);
  node.recomputed_dst = floats(place.recomputed_dst);
  node.recompute = place.recompute;
  node.backward_fusion.add_to_diff_src = place.add_to_diff_src;
  for (size_t j = 0; j < needs.inputs.size(); ++j) {
    const int input = needs.inputs[j];
    node.src.push_back(input == kImagesInput ? nullptr : nodes[input].dst);
    const float* again = input == kImagesInput ? nullptr : nodes[input].recomputed_dst;
    const float* backward_src = again != nullptr ? again : node.src.back();
    node.backward_src.push_back(needs.plan.backward_needs_src ? backward_src : nullptr);
    if (!has_backward()) continue;
    node.diff_src.push_back(floats(place.diff_src[j]));
    node.add_to.push_back(place.accumulate[j] ? floats(memory.nodes[input].diff_dst) : nullptr);
  }
}

// If the node `deferred` is, lets its consumer read through it, and take the sums of its gradient.
void Net::Impl::BindDeferred(ReadyNode* consumer, int deferred, const NodePlacement& place,
                             const FusionPlan& consumer_plan) {
  ReadyNode& node = nodes[deferred];
  if (place.deferred_forward) {
    consumer->src[0] = node.src[0];
    consumer->forward_fusion.src_affine = node.layer->normalization()->DstAffine(node.state);
  }
  if (place.deferred_backward) {
    consumer->backward_src[0] = node.backward_src[0];
    consumer->backward_fusion.src_affine = node.layer->normalization()->DstAffine(node.state);
  }
  if (place.diff_dst_sums != kNoBuffer) {
    BlobGradientSums sums{{.part_pixels = consumer_plan.diff_src_sums_pixels}};
    sums.g = reinterpret_cast<double*>(Address(place.diff_dst_sums));
    sums.gx = sums.g + sums.elements(node.dst_desc);
    node.backward_fusion.diff_dst_sums = consumer->backward_fusion.diff_src_sums = sums;
  }
}

// Lets a batch norm use the moments that the previous node takes, and that node map its gradient.
void Net::Impl::BindNormalized(ReadyNode* normalization, int previous, const NodePlacement& place,
                               const FusionPlan& plan) {
  ReadyNode& node = nodes[previous];
  if (place.dst_moments != kNoBuffer) {
    BlobMoments moments{{.part_pixels = plan.dst_moments_pixels}};
    moments.mean = reinterpret_cast<double*>(Address(place.dst_moments));
    moments.m2 = moments.mean + moments.elements(node.dst_desc);
    node.forward_fusion.dst_moments = normalization->forward_fusion.src_moments = moments;
  }
  if (place.diff_dst_is_map) {
    node.backward_fusion.diff_dst_map = normalization->layer->normalization()->DiffSrcMap(
        normalization->backward_src[0], normalization->state);
  }
}

}  // namespace ringtail
