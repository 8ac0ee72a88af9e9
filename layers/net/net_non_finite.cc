// Which layer of a step made the first NaN or infinity.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "layers/net/graph.h"
#include "layers/net/net_impl.h"

namespace ringtail {
namespace {

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

Status Net::FindNonFinite(const BatchView& batch, StepContext step) {
  Impl& net = *impl_;
  const auto found = [](std::string message) {
    return Status(StatusCode::kDataLoss, std::move(message));
  };
  const int64_t pixels = batch.images == nullptr
                             ? 0
                             : net.options.batch * net.model->input_channels() *
                                   net.options.image_size * net.options.image_size;
  if (!AllFinite({batch.images, static_cast<size_t>(pixels)})) {
    return found("an image of the batch has a NaN or infinity");
  }
  // The rerun must leave no trace in the running statistics.
  const std::span<float> buffers = net.model->arena().buffer_values();
  const std::vector<float> saved(buffers.begin(), buffers.end());
  net.BeginPass(batch, step);
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
    if (graph[i].end == Node::End::kSends) continue;  // it has no blob
    AlignedBuffer spare;
    if (!AllFinite(net.Dst(static_cast<int>(i), &spare))) {
      result = found(fmt::format("the output of layer '{}' has a NaN or infinity", graph[i].name));
    }
  }
  std::copy(saved.begin(), saved.end(), buffers.begin());
  for (int i = static_cast<int>(graph.size()) - 1; i >= 0 && result.ok(); --i) {
    for (const Parameter* p : net.model->parameters(i)) {
      if (!p->is_buffer && !p->is_fixed && !AllFinite(p->grad())) {
        result = found(fmt::format("the gradient of '{}' has a NaN or infinity", p->spec.name));
      }
    }
  }
  return result;
}

}  // namespace ringtail
