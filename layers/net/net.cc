#include "layers/net/net_impl.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"
#include "layers/element_types/widen.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Net::Impl::SetImages(const float* images) {
  const Graph& graph = model->graph();
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t j = 0; j < nodes[i].src.size(); ++j) {
      if (graph.nodes()[i].inputs[j] == kImagesInput)
        nodes[i].src[j] = nodes[i].backward_src[j] = images;
    }
  }
}

void Net::Impl::BeginPass(const BatchView& batch, const StepContext& context) {
  step = context;
  step.labels = batch.labels;
  step.soft = batch.soft;
  frozen_step = step;
  frozen_step.training = false;
  SetImages(batch.images);
}

void Net::Impl::ForwardNode(int i) {
  ReadyNode& node = nodes[i];
  const double start = timer ? Now() : 0;
  node.layer->Forward({.src = node.src,
                       .dst = node.dst,
                       .state = node.state,
                       .scratch = node.forward_scratch,
                       .step = node.frozen ? &frozen_step : &step,
                       .fusion = node.forward_fusion});
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
                        .dst = node.dst,
                        .diff_dst = node.diff_dst,
                        .diff_src = node.diff_src,
                        .state = node.state,
                        .scratch = node.backward_scratch,
                        .step = &step,
                        .fusion = node.backward_fusion});
  for (size_t j = 0; j < node.add_to.size(); ++j) {
    if (node.add_to[j] == nullptr) continue;
    const int input = model->graph().nodes()[i].inputs[j];
    AddBlob(nodes[input].dst_desc, node.diff_src[j], node.add_to[j]);
  }
  if (timer) timer(i, true, Now() - start);
}

// dst of node i right after its Forward, as floats; one that is deferred or bf16 is written to
// `spare`.
std::span<const float> Net::Impl::Dst(int i, AlignedBuffer* spare) {
  const ReadyNode& node = nodes[i];
  const float* dst = node.dst;
  AlignedBuffer deferred;
  if (dst == nullptr) {
    deferred = AlignedBuffer(node.dst_desc.bytes());
    Recompute(i, deferred.floats().data());
    dst = deferred.floats().data();
  }
  const auto elements = static_cast<size_t>(node.dst_desc.elements());
  if (node.dst_desc.type == BlobType::kBf16) {
    *spare = AlignedBuffer(elements * sizeof(float));
    WidenBlob(node.dst_desc, dst, spare->floats().data());
  } else if (node.dst == nullptr) {
    *spare = std::move(deferred);
  } else {
    return {dst, elements};
  }
  return spare->floats().first(elements);
}

LossResult Net::Impl::Loss() {
  if (!model->graph().has_loss()) return {};
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

void Net::Impl::CheckLabels(const BatchView& batch) const {
  RT_CHECK(std::ssize(batch.labels) == options.batch, "one label per row of the batch");
  RT_CHECK(batch.soft.empty() || std::ssize(batch.soft.other_labels) == options.batch,
           "none, or one other label per row of the batch");
  RT_CHECK(batch.soft.weights.size() == batch.soft.other_labels.size(), "two weights per row");
  for (const auto labels : {batch.labels, batch.soft.other_labels}) {
    for (const int32_t label : labels) {
      RT_CHECK(label >= -1 && label < model->num_classes(), "labels must be -1 .. classes - 1");
    }
  }
}

LossResult Net::Forward(const BatchView& batch, StepContext step) {
  Impl& net = *impl_;
  net.CheckLabels(batch);
  net.BeginPass(batch, step);
  for (int i = 0; i < static_cast<int>(net.nodes.size()); ++i) {
    net.ForwardNode(i);
    if (i == net.feature_node) net.KeepFeatureMap();
  }
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
const StageBlobs& Net::boundaries() const { return impl_->boundaries; }
const NetOptions& Net::options() const { return impl_->options; }
std::span<const LayerInfo> Net::layers() const { return impl_->infos; }
int64_t Net::memory_bytes() const { return impl_->planned_bytes; }
std::span<const NodeNeeds> Net::needs() const { return impl_->needs; }
void Net::set_timer(LayerTimer timer) { impl_->timer = std::move(timer); }

}  // namespace ringtail
