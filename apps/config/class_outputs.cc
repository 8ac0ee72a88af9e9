#include "apps/config/class_outputs.h"

#include <fmt/core.h>

#include <algorithm>

namespace ringtail {
namespace {

constexpr int kNone = -1;

// The entry of net.layer that layer `i` reads first.
int InputOf(const NetConfig& net, int i) {
  if (net.layer(i).input().empty()) return i - 1;
  for (int j = i - 1; j >= 0; --j) {
    if (net.layer(j).name() == net.layer(i).input(0)) return j;
  }
  return kNone;
}

bool KeepsChannels(const LayerConfig& layer) {
  switch (layer.kind_case()) {
    case LayerConfig::kFlatten:
    case LayerConfig::kDropout:
    case LayerConfig::kMaxPool:
    case LayerConfig::kAveragePool:
    case LayerConfig::kGlobalAveragePool:
    case LayerConfig::kAdaptiveAveragePool:
      return true;
    default:
      return false;
  }
}

// The field of the layer with the number of its outputs; empty: it has none.
std::string OutputsField(const LayerConfig& layer) {
  switch (layer.kind_case()) {
    case LayerConfig::kLinear:
      return "linear.out_features";
    case LayerConfig::kDropConnect:
      return "drop_connect.linear.out_features";
    case LayerConfig::kConvolution:
      return "convolution.out_channels";
    default:
      return "";
  }
}

int Outputs(const LayerConfig& layer) {
  if (layer.has_linear()) return layer.linear().out_features();
  if (layer.has_drop_connect()) return layer.drop_connect().linear().out_features();
  return layer.convolution().out_channels();
}

void SetOutputs(int outputs, LayerConfig* layer) {
  if (layer->has_linear()) return layer->mutable_linear()->set_out_features(outputs);
  if (layer->has_drop_connect()) {
    return layer->mutable_drop_connect()->mutable_linear()->set_out_features(outputs);
  }
  layer->mutable_convolution()->set_out_channels(outputs);
}

// The entry of net.layer that gives the logits, or kNone.
int LogitsOf(const NetConfig& net) {
  int i = net.layer_size() - 1;
  if (i < 0 || !net.layer(i).has_softmax_cross_entropy()) return kNone;
  do {
    i = InputOf(net, i);
  } while (i >= 0 && KeepsChannels(net.layer(i)));
  return i >= 0 && !OutputsField(net.layer(i)).empty() ? i : kNone;
}

}  // namespace

StatusOr<std::string> FitOutputsToClasses(int classes, std::span<const std::string> overrides,
                                          RunConfig* config) {
  const int i = LogitsOf(config->net());
  if (classes < 2 || i == kNone) return std::string();
  LayerConfig* const layer = config->mutable_net()->mutable_layer(i);
  const int before = Outputs(*layer);
  if (before == classes) return std::string();
  const std::string field = OutputsField(*layer);
  for (const std::string& place : {layer->name(), std::to_string(i)}) {
    const std::string start = fmt::format("net.layer[{}].{}=", place, field);
    const auto set = std::find_if(overrides.begin(), overrides.end(),
                                  [&](const std::string& text) { return text.starts_with(start); });
    if (set == overrides.end()) continue;
    if (before > classes) {
      return fmt::format("{}: {} outputs, as --set says, for {} classes: no image is of the others",
                         layer->name(), before, classes);
    }
    return InvalidArgument(fmt::format(
        "--set {}: the images have {} classes; leave it out, and '{}' gets as many outputs", *set,
        classes, layer->name()));
  }
  SetOutputs(classes, layer);
  return fmt::format("{}: {} outputs, one for each class (configured: {})", layer->name(), classes,
                     before);
}

}  // namespace ringtail
