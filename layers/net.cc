#include "layers/net.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/memory_limit.h"
#include "core/parallel_for.h"
#include "layers/convolution/algorithm_choices.h"
#include "layers/graph.h"
#include "layers/kernels/elementwise.h"
#include "layers/net_memory.h"

namespace ringtail {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

void Accumulate(const float* from, float* to, int64_t elements) {
  constexpr int64_t kGrain = 1 << 14;
  const auto add = RT_KERNEL(AddInto);
  ParallelFor(elements, kGrain,
              [&](int64_t begin, int64_t end) { add(from + begin, to + begin, end - begin); });
}

// The model made its parameters for pictures of one size; a linear layer behind a flatten has
// others for another size.
Status CheckParameters(std::span<const Parameter* const> parameters, const ShapeInfo& wanted) {
  for (size_t i = 0; i < wanted.parameters.size(); ++i) {
    const Shape &have = parameters[i]->spec.shape, &want = wanted.parameters[i].spec.shape;
    if (have == want) continue;
    return InvalidArgument(fmt::format("'{}' is {}, but {} for pictures of this size",
                                       parameters[i]->spec.name, ShapeString(have),
                                       ShapeString(want)));
  }
  return OkStatus();
}

// A node made ready to run: its layer and the addresses of everything that it touches.
struct ReadyNode {
  std::unique_ptr<Layer> layer;
  BlobDesc dst_desc;
  bool learns = false;
  std::vector<const float*> src;  // entries for the pictures change with each batch
  std::vector<const float*> backward_src;
  float* dst = nullptr;
  float* diff_dst = nullptr;
  std::vector<float*> diff_src;
  std::vector<float*> add_to;       // where diff_src is a temporary: the gradient to add it to
  float* recomputed_dst = nullptr;  // where dst is dropped after forward
  std::vector<int> recompute;       // nodes to recompute before this one's backward
  // Where src[0] is the src of a deferred node: that node's map.
  ChannelAffine src_affine, backward_src_affine;
  BlobMoments src_moments, dst_moments;           // where this node or the one before takes them
  BlobGradientSums diff_src_sums, diff_dst_sums;  // where this node or the one behind takes them
  ChannelGradient diff_dst_map;  // where diff_dst is that of the reader, a batch norm
  bool add_to_diff_src = false;
  std::byte* state = nullptr;
  std::byte* forward_scratch = nullptr;
  std::byte* backward_scratch = nullptr;
};

}  // namespace

struct Net::Impl {
  Model* model = nullptr;
  NetOptions options;
  std::vector<ReadyNode> nodes;
  std::vector<LayerInfo> infos;
  AlignedBuffer block;
  std::vector<float> logits;
  LayerTimer timer;
  // What Backward needs of the last Forward.
  StepContext step;
  bool forward_done = false;

  Status Build();
  StatusOr<std::vector<NodeNeeds>> SetUpLayers();
  bool IsAffineOfOneReader(int i, std::span<const NodeNeeds> needs) const;
  bool IsNormalizedByOneReader(int i, std::span<const std::unique_ptr<Layer>> layers) const;
  bool HasReaderBehind(int i, int reader) const;
  void Bind(const NetMemory& memory, std::span<const NodeNeeds> needs);
  void BindDeferred(ReadyNode* reader, int deferred, const NodePlacement& place,
                    const LayerPlan& reader_plan);
  void BindNormalized(ReadyNode* reader, int normalized, const NodePlacement& place,
                      const LayerPlan& plan);
  void SetImages(const float* images);
  void ForwardNode(int i);
  void BackwardNode(int i);
  void Recompute(int i, float* dst);
  std::span<const float> Dst(int i, AlignedBuffer* spare);
  LossResult Loss();
};

Net::Net() : impl_(std::make_unique<Impl>()) {}
Net::~Net() = default;

StatusOr<std::unique_ptr<Net>> Net::Create(Model* model, const NetOptions& options) {
  if (options.batch < 1)
    return InvalidArgument(fmt::format("batch is {}; it must be at least 1", options.batch));
  std::unique_ptr<Net> net(new Net);
  net->impl_->model = model;
  net->impl_->options = options;
  RT_RETURN_IF_ERROR(net->impl_->Build());
  return net;
}

Status Net::Impl::Build() {
  RT_ASSIGN_OR_RETURN(const std::vector<NodeNeeds> needs, SetUpLayers());
  const NetMemory memory = PlanNetMemory(needs, options.training, options.recompute, options.defer);
  RT_RETURN_IF_ERROR(CheckMemoryAvailable(
      memory.total_bytes, fmt::format("a batch of {} pictures of {}x{}", options.batch,
                                      options.image_size, options.image_size)));
  block = AlignedBuffer(memory.total_bytes);
  Bind(memory, needs);
  logits.resize(options.batch * model->num_classes());
  return OkStatus();
}

// Instantiates every layer for this batch, layouts flowing from the pictures to the loss.
StatusOr<std::vector<NodeNeeds>> Net::Impl::SetUpLayers() {
  const Graph& graph = model->graph();
  const BlobDesc images{options.batch, model->input_channels(), options.image_size,
                        options.image_size};
  std::vector<std::unique_ptr<Layer>> layers;
  for (const Node& node : graph.nodes()) {
    RT_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, node.Instantiate());
    layers.push_back(std::move(layer));
  }
  int failed = 0;
  RT_ASSIGN_OR_RETURN(const std::vector<ShapeInfo> shapes,
                      InferShapes(graph, images, layers, &failed));

  std::vector<NodeNeeds> needs;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes()[i];
    std::vector<BlobDesc> src;
    std::unique_ptr<bool[]> needs_diff_src(new bool[node.inputs.size()]);
    bool learns = !model->parameters(i).empty();
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const int input = node.inputs[j];
      src.push_back(input == kImagesInput ? images : needs[input].plan.dst);
      needs_diff_src[j] = input != kImagesInput && needs[input].learns;
      learns = learns || needs_diff_src[j];
    }
    RT_RETURN_IF_ERROR(
        CheckParameters(model->parameters(i), shapes[i]).Annotate("layer '" + node.name + "'"));
    auto plan = layers[i]->Setup(
        {.src = src,
         .parameters = model->parameters(i),
         .training = options.training,
         .measure = options.measure,
         .needs_diff_src = {needs_diff_src.get(), node.inputs.size()},
         .src_is_affine = IsAffineOfOneReader(node.inputs[0], needs),
         .dst_is_normalized = IsNormalizedByOneReader(i, layers),
         .diff_src_is_begun = needs_diff_src[0] && HasReaderBehind(node.inputs[0], i)});
    RT_RETURN_IF_ERROR(plan.status().Annotate(fmt::format("layer '{}'", node.name)));
    RT_CHECK(plan->dst.SameShape(shapes[i].dst),
             "Setup must keep the shape that InferShape promised");

    LayerInfo info{.name = node.name,
                   .kind = node.kind,
                   .implementation = layers[i]->Implementation(),
                   .timings = layers[i]->Timings(),
                   .dst = plan->dst,
                   .parameters = 0,
                   .forward_flops = shapes[i].forward_flops};
    for (const ParameterRequest& p : shapes[i].parameters) {
      if (!p.is_buffer) info.parameters += NumElements(p.spec.shape);
    }
    info.traffic_bytes = plan->dst.bytes() + info.parameters * static_cast<int64_t>(sizeof(float));
    for (const BlobDesc& desc : src) info.traffic_bytes += desc.bytes();
    info.backward_flops = learns ? info.forward_flops * (needs_diff_src[0] ? 2 : 1) : 0;
    info.memory_bytes = plan->dst.bytes() * (options.training && learns ? 2 : 1) +
                        static_cast<int64_t>(plan->state_bytes);
    infos.push_back(std::move(info));
    needs.push_back({.inputs = node.inputs, .plan = *plan, .learns = learns});
    nodes.push_back({.layer = std::move(layers[i]), .dst_desc = plan->dst, .learns = learns});
  }
  AlgorithmChoices::Shared().Save();
  return needs;
}

bool Net::Impl::IsAffineOfOneReader(int i, std::span<const NodeNeeds> needs) const {
  return i != kImagesInput && needs[i].plan.dst_is_affine && model->graph().nodes()[i].readers == 1;
}

bool Net::Impl::IsNormalizedByOneReader(int i,
                                        std::span<const std::unique_ptr<Layer>> layers) const {
  const std::vector<Node>& graph = model->graph().nodes();
  if (!options.training || !options.defer || graph[i].readers != 1) return false;
  for (size_t reader = i + 1; reader < graph.size(); ++reader) {
    if (graph[reader].inputs[0] == i) return layers[reader]->normalizes();
  }
  return false;  // it is another input of its reader
}

// Whether a node behind `reader`, whose backward comes first, reads node i as well.
bool Net::Impl::HasReaderBehind(int i, int reader) const {
  const std::vector<Node>& graph = model->graph().nodes();
  return std::any_of(graph.begin() + reader + 1, graph.end(), [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), i) != node.inputs.end();
  });
}

void Net::Impl::Bind(const NetMemory& memory, std::span<const NodeNeeds> needs) {
  const auto at = [&](int64_t offset) {
    return offset == kNoBuffer ? nullptr : block.data() + offset;
  };
  const auto floats = [&](int64_t offset) { return reinterpret_cast<float*>(at(offset)); };
  for (size_t i = 0; i < nodes.size(); ++i) {
    ReadyNode& node = nodes[i];
    const NodePlacement& place = memory.nodes[i];
    node.dst = floats(place.dst);
    node.diff_dst = floats(place.diff_dst);
    node.state = at(place.state);
    node.forward_scratch = at(place.forward_scratch);
    node.backward_scratch = at(place.backward_scratch);
    node.recomputed_dst = floats(place.recomputed_dst);
    node.recompute = place.recompute;
    node.add_to_diff_src = place.add_to_diff_src;
    for (size_t j = 0; j < needs[i].inputs.size(); ++j) {
      const int input = needs[i].inputs[j];
      node.src.push_back(input == kImagesInput ? nullptr : nodes[input].dst);
      const float* again = input == kImagesInput ? nullptr : nodes[input].recomputed_dst;
      const float* backward_src = again != nullptr ? again : node.src.back();
      node.backward_src.push_back(needs[i].plan.backward_needs_src ? backward_src : nullptr);
      if (!options.training) continue;
      node.diff_src.push_back(floats(place.diff_src[j]));
      node.add_to.push_back(place.accumulate[j] ? floats(memory.nodes[input].diff_dst) : nullptr);
    }
    const int input = needs[i].inputs[0];
    if (input == kImagesInput) continue;
    BindDeferred(&node, input, memory.nodes[input], needs[i].plan);
    BindNormalized(&node, input, memory.nodes[input], needs[input].plan);
  }
}

// Lets the reader read through the deferred node, where it is one, and take its gradient's sums.
void Net::Impl::BindDeferred(ReadyNode* reader, int deferred, const NodePlacement& place,
                             const LayerPlan& reader_plan) {
  ReadyNode& node = nodes[deferred];
  if (place.deferred_forward) {
    reader->src[0] = node.src[0];
    reader->src_affine = node.layer->DstAffine(node.state);
  }
  if (place.deferred_backward) {
    reader->backward_src[0] = node.backward_src[0];
    reader->backward_src_affine = node.layer->DstAffine(node.state);
  }
  if (place.diff_dst_sums != kNoBuffer) {
    BlobGradientSums sums{{.part_pixels = reader_plan.diff_src_sums_pixels}};
    sums.g = reinterpret_cast<double*>(block.data() + place.diff_dst_sums);
    sums.gx = sums.g + sums.elements(node.dst_desc);
    node.diff_dst_sums = reader->diff_src_sums = sums;
  }
}

// Lets a batch norm use the moments that the node before it takes, and that node map its gradient.
void Net::Impl::BindNormalized(ReadyNode* reader, int normalized, const NodePlacement& place,
                               const LayerPlan& plan) {
  ReadyNode& node = nodes[normalized];
  if (place.dst_moments != kNoBuffer) {
    BlobMoments moments{{.part_pixels = plan.dst_moments_pixels}};
    moments.mean = reinterpret_cast<double*>(block.data() + place.dst_moments);
    moments.m2 = moments.mean + moments.elements(plan.dst);
    node.dst_moments = reader->src_moments = moments;
  }
  if (place.diff_dst_is_map) {
    node.diff_dst_map = reader->layer->DiffSrcMap(reader->backward_src[0], reader->state);
  }
}

void Net::Impl::SetImages(const float* images) {
  const Graph& graph = model->graph();
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t j = 0; j < nodes[i].src.size(); ++j) {
      if (graph.nodes()[i].inputs[j] == kImagesInput)
        nodes[i].src[j] = nodes[i].backward_src[j] = images;
    }
  }
}

void Net::Impl::ForwardNode(int i) {
  ReadyNode& node = nodes[i];
  const double start = timer ? Now() : 0;
  node.layer->Forward({.src = node.src,
                       .src_affine = node.src_affine,
                       .src_moments = node.src_moments,
                       .dst = node.dst,
                       .dst_moments = node.dst_moments,
                       .state = node.state,
                       .scratch = node.forward_scratch,
                       .step = &step});
  if (timer) timer(i, false, Now() - start);
}

void Net::Impl::Recompute(int i, float* dst) {
  const ReadyNode& node = nodes[i];
  node.layer->Recompute(
      {.src = node.src, .dst = dst, .state = node.state, .scratch = nullptr, .step = &step});
}

void Net::Impl::BackwardNode(int i) {
  ReadyNode& node = nodes[i];
  const double start = timer ? Now() : 0;
  for (const int dropped : node.recompute) Recompute(dropped, nodes[dropped].recomputed_dst);
  node.layer->Backward({.src = node.backward_src,
                        .src_affine = node.backward_src_affine,
                        .dst = node.dst,
                        .diff_dst = node.diff_dst,
                        .diff_dst_map = node.diff_dst_map,
                        .diff_dst_sums = node.diff_dst_sums,
                        .diff_src = node.diff_src,
                        .diff_src_sums = node.diff_src_sums,
                        .add_to_diff_src = node.add_to_diff_src,
                        .state = node.state,
                        .scratch = node.backward_scratch,
                        .step = &step});
  for (size_t j = 0; j < node.add_to.size(); ++j) {
    if (node.add_to[j] == nullptr) continue;
    const int input = model->graph().nodes()[i].inputs[j];
    Accumulate(node.diff_src[j], node.add_to[j], nodes[input].dst_desc.elements());
  }
  if (timer) timer(i, true, Now() - start);
}

// dst of node i right after its Forward; what is deferred is written to `spare`.
std::span<const float> Net::Impl::Dst(int i, AlignedBuffer* spare) {
  const ReadyNode& node = nodes[i];
  const auto elements = static_cast<size_t>(node.dst_desc.elements());
  if (node.dst != nullptr) return {node.dst, elements};
  *spare = AlignedBuffer(elements * sizeof(float));
  Recompute(i, spare->floats().data());
  return spare->floats();
}

LossResult Net::Impl::Loss() {
  const ReadyNode& last = nodes.back();
  const ReadyNode& scores = nodes[model->graph().logits()];
  const int64_t classes = model->num_classes(), row = scores.dst_desc.elements() / options.batch;
  LossResult result;
  for (int64_t n = 0; n < options.batch; ++n) {
    const float* z = scores.dst + n * row;
    std::copy_n(z, classes, logits.begin() + n * classes);
    if (step.labels[n] < 0) continue;
    ++result.count;
    result.loss_sum += last.dst[n];
    result.correct += std::max_element(z, z + classes) - z == step.labels[n];
  }
  return result;
}

LossResult Net::Forward(const BatchView& batch, StepContext step) {
  Impl& net = *impl_;
  RT_CHECK(static_cast<int64_t>(batch.labels.size()) == net.options.batch,
           "one label per row of the batch");
  for (const int32_t label : batch.labels) {
    RT_CHECK(label >= -1 && label < net.model->num_classes(), "labels must be -1 .. classes - 1");
  }
  net.step = step;
  net.step.labels = batch.labels;
  net.SetImages(batch.images);
  for (size_t i = 0; i < net.nodes.size(); ++i) net.ForwardNode(static_cast<int>(i));
  net.forward_done = true;
  return net.Loss();
}

void Net::Backward(const GradReady& on_ready) {
  Impl& net = *impl_;
  RT_CHECK(net.options.training, "an evaluation net has no backward");
  RT_CHECK(net.forward_done && net.step.training, "Backward follows a training Forward");
  net.forward_done = false;
  for (int i = static_cast<int>(net.nodes.size()) - 1; i >= 0; --i) {
    if (!net.nodes[i].learns) continue;
    net.BackwardNode(i);
    if (!on_ready) continue;
    for (const Parameter* p : net.model->parameters(i)) {
      if (!p->is_buffer) on_ready(*p);
    }
  }
}

std::span<const float> Net::logits() const { return impl_->logits; }
const NetOptions& Net::options() const { return impl_->options; }
std::span<const LayerInfo> Net::layers() const { return impl_->infos; }
int64_t Net::memory_bytes() const { return static_cast<int64_t>(impl_->block.size_bytes()); }
void Net::set_timer(LayerTimer timer) { impl_->timer = std::move(timer); }

Status Net::FindNonFinite(const BatchView& batch, StepContext step) {
  Impl& net = *impl_;
  const auto found = [](std::string message) {
    return Status(StatusCode::kDataLoss, std::move(message));
  };
  const int64_t pixels = net.options.batch * net.model->input_channels() * net.options.image_size *
                         net.options.image_size;
  if (!AllFinite({batch.images, static_cast<size_t>(pixels)})) {
    return found("a picture of the batch has a NaN or infinity");
  }
  // The rerun must leave no trace in the running statistics.
  const std::span<float> buffers = net.model->arena().buffer_values();
  const std::vector<float> saved(buffers.begin(), buffers.end());
  net.step = step;
  net.step.labels = batch.labels;
  net.SetImages(batch.images);
  Status result = OkStatus();
  const std::vector<Node>& graph = net.model->graph().nodes();
  for (size_t i = 0; i < graph.size() && result.ok(); ++i) {
    for (const Parameter* p : net.model->parameters(static_cast<int>(i))) {
      if (!AllFinite(p->value())) {
        result = found(fmt::format("parameter '{}' has a NaN or infinity", p->spec.name));
      }
    }
    if (!result.ok()) break;
    net.ForwardNode(static_cast<int>(i));
    AlignedBuffer spare;
    if (!AllFinite(net.Dst(static_cast<int>(i), &spare))) {
      result = found(fmt::format("the output of layer '{}' has a NaN or infinity", graph[i].name));
    }
  }
  std::copy(saved.begin(), saved.end(), buffers.begin());
  for (int i = static_cast<int>(graph.size()) - 1; i >= 0 && result.ok(); --i) {
    for (const Parameter* p : net.model->parameters(i)) {
      if (!p->is_buffer && !AllFinite(p->grad())) {
        result = found(fmt::format("the gradient of '{}' has a NaN or infinity", p->spec.name));
      }
    }
  }
  return result;
}

}  // namespace ringtail
