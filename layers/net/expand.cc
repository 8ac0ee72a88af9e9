#include "layers/net/expand.h"

#include <fmt/core.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/config/field_check.h"
#include "core/config/nearest_name.h"
#include "layers/net/residual_stage.h"

namespace ringtail {
namespace {

constexpr int64_t kUnknownChannels = -1;
constexpr int kMaxNesting = 8;  // of repeat inside repeat
constexpr size_t kMaxNameLength = 200;

bool IsValidName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength || name == kImages) return false;
  for (const char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '.' || c == '/' || c == '-';
    if (!ok) return false;
  }
  return true;
}

Status CheckName(const char* what, const std::string& name, const char* field,
                 const FieldCheck& fields) {
  if (IsValidName(name)) return OkStatus();
  if (name.empty()) return fields.Error(field, fmt::format("{} is missing", what));
  return fields.Error(
      field,
      fmt::format("{} is '{}'; it must be 1 to {} letters, digits, '_', '.', '/' or '-', and not "
                  "'{}'",
                  what, name, kMaxNameLength, kImages));
}

// Walks the config from top to bottom. Knows every name so far, its number of channels, and, inside
// a repeat, which copy's names an input may mean.
class Expander {
 public:
  explicit Expander(int64_t input_channels) : last_(kImages) {
    channels_[kImages] = input_channels;
  }

  Status Add(const LayerConfig& layer, const std::string& prefix, const std::string& origin,
             int depth) {
    origin_ = origin;
    RT_RETURN_IF_ERROR(CheckName("the layer's name", layer.name(), "name", fields_));
    if (layer.precision() == AUTO) {
      return fields_.Error(
          "precision", fmt::format("layer '{}' has the precision AUTO, which is for a whole run "
                                   "(train.precision); give the layer FLOAT32 or BFLOAT16",
                                   prefix + layer.name()));
    }
    LayerConfig copy = layer;
    copy.set_name(prefix + layer.name());
    RT_RETURN_IF_ERROR(
        ResolveInputs(layer, prefix, &copy).Annotate(fmt::format("layer '{}'", copy.name())));
    return Dispatch(copy, origin, depth).Annotate(fmt::format("layer '{}'", copy.name()));
  }

  // Inputs that name a composite (or "previous" in a repeat) are replaced by the layer they stand
  // for.
  void ResolveAliases() {
    for (ExpandedLayer& layer : layers_) {
      for (std::string& input : *layer.config.mutable_input()) {
        for (auto it = alias_.find(input); it != alias_.end(); it = alias_.find(input))
          input = it->second;
      }
    }
  }

  // The net's choice, where a convolution has none of its own.
  void SetConvolutionPolicy(ConvolutionPolicy policy) {
    for (ExpandedLayer& layer : layers_) {
      if (!layer.config.has_convolution() || layer.config.convolution().has_algorithm()) continue;
      layer.config.mutable_convolution()->set_algorithm(policy);
    }
  }

  std::vector<ExpandedLayer> Take() { return std::move(layers_); }
  // Where the error is: the layer that was being added, or the field of it that is wrong.
  std::string origin() const { return failed_.empty() ? origin_ : origin_ + "." + failed_; }

 private:
  // Inputs by name: of this copy of a repeat, else of the net. Without inputs: the layer above.
  Status ResolveInputs(const LayerConfig& layer, const std::string& prefix, LayerConfig* copy) {
    copy->clear_input();
    if (layer.input_size() == 0) copy->add_input(last_);
    for (int i = 0; i < layer.input_size(); ++i) {
      const std::string& input = layer.input(i);
      if (channels_.contains(prefix + input)) {
        copy->add_input(prefix + input);
      } else if (channels_.contains(input)) {
        copy->add_input(input);
      } else {
        return fields_.Error(fmt::format("input[{}]", i), UnknownInput(input));
      }
    }
    return OkStatus();
  }

  std::string UnknownInput(const std::string& input) const {
    std::vector<std::string> names;
    for (const auto& [name, channels] : channels_) names.push_back(name);
    const std::string nearest = NearestName(input, names);
    return fmt::format("input '{}' is no layer above this one{}", input,
                       nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
  }

  Status Dispatch(const LayerConfig& layer, const std::string& origin, int depth) {
    switch (layer.kind_case()) {
      case LayerConfig::KIND_NOT_SET:
        return InvalidArgument("it has no kind; write for example relu {} inside");
      case LayerConfig::kResidualStage:
      case LayerConfig::kInvertedResidualStage:
        return AddStage(layer, origin);
      case LayerConfig::kRepeat:
        return AddRepeat(layer, origin, depth);
      default:
        return AddPrimitive(layer, origin);
    }
  }

  Status AddPrimitive(const LayerConfig& layer, const std::string& origin) {
    if (static_cast<int>(layers_.size()) >= kMaxLayers) {
      return InvalidArgument(fmt::format("the net has more than {} layers", kMaxLayers));
    }
    const int64_t channels = OutputChannels(layer);
    if (!channels_.emplace(layer.name(), channels).second) {
      return fields_.Error("name", "another layer has the same name; names must be unique");
    }
    last_ = layer.name();
    layers_.push_back({layer, origin});
    return OkStatus();
  }

  Status AddStage(const LayerConfig& stage, const std::string& origin) {
    if (stage.input_size() != 1) return InvalidArgument("a stage reads exactly one input");
    const InvertedResidualStageConfig& inverted = stage.inverted_residual_stage();
    if (inverted.has_block_name()) {
      RT_RETURN_IF_ERROR(CheckName("block_name", inverted.block_name(), "block_name",
                                   fields_.Within("inverted_residual_stage")));
    }
    const int64_t channels = channels_.at(stage.input(0));
    if (channels == kUnknownChannels) {
      return InvalidArgument("a stage cannot follow a flatten; it needs images");
    }
    auto expanded = stage.has_residual_stage()
                        ? ExpandResidualStage(stage, channels, fields_)
                        : ExpandInvertedResidualStage(stage, channels, fields_);
    RT_RETURN_IF_ERROR(expanded.status());
    for (LayerConfig& layer : *expanded) {
      if (stage.has_precision()) layer.set_precision(stage.precision());
      RT_RETURN_IF_ERROR(AddPrimitive(layer, origin));
    }
    return Alias(stage.name());
  }

  Status AddRepeat(const LayerConfig& layer, const std::string& origin, int depth) {
    const RepeatConfig& repeat = layer.repeat();
    RT_RETURN_IF_ERROR(fields_.Within("repeat").Between("count", repeat.count(), 1, kMaxLayers));
    if (repeat.layer().empty()) return InvalidArgument("repeat has no layers inside");
    if (depth >= kMaxNesting) {
      return InvalidArgument(fmt::format("repeats are nested more than {} deep", kMaxNesting));
    }
    if (layer.input_size() != 1) return InvalidArgument("a repeat reads exactly one input");
    last_ = layer.input(0);
    for (int i = 0; i < repeat.count(); ++i) {
      const std::string prefix = fmt::format("{}.{}.", layer.name(), i);
      const std::string previous = prefix + "previous";
      const int64_t channels = channels_.at(last_);
      if (!channels_.emplace(previous, channels).second) {
        return InvalidArgument(
            fmt::format("another layer is called '{}', as the repeat's own input is", previous));
      }
      alias_[previous] = last_;
      for (int j = 0; j < repeat.layer_size(); ++j) {
        LayerConfig inner = repeat.layer(j);
        if (layer.has_precision() && !inner.has_precision()) inner.set_precision(layer.precision());
        RT_RETURN_IF_ERROR(
            Add(inner, prefix, fmt::format("{}.repeat.layer[{}]", origin, j), depth + 1));
        origin_ = origin;
      }
    }
    return Alias(layer.name());
  }

  // A composite's name stands for its last layer.
  Status Alias(const std::string& name) {
    if (!channels_.emplace(name, channels_.at(last_)).second) {
      return fields_.Error("name", "another layer has the same name; names must be unique");
    }
    alias_[name] = last_;
    return OkStatus();
  }

  int64_t OutputChannels(const LayerConfig& layer) const {
    const int64_t input = channels_.at(layer.input(0));
    switch (layer.kind_case()) {
      case LayerConfig::kConvolution:
        return layer.convolution().has_out_channels() ? layer.convolution().out_channels() : input;
      case LayerConfig::kLinear:
        return layer.linear().out_features();
      case LayerConfig::kDropConnect:
        return layer.drop_connect().linear().out_features();
      case LayerConfig::kFlatten:
        return kUnknownChannels;
      case LayerConfig::kConcat: {
        int64_t sum = 0;
        for (const std::string& name : layer.input()) {
          if (channels_.at(name) == kUnknownChannels) return kUnknownChannels;
          sum += channels_.at(name);
        }
        return sum;
      }
      default:
        return input;
    }
  }

  std::vector<ExpandedLayer> layers_;
  // By name; ordered, so that messages are the same each time.
  std::map<std::string, int64_t> channels_;
  std::unordered_map<std::string, std::string> alias_;
  std::string last_, origin_, failed_;
  const FieldCheck fields_{&failed_};  // of the layer at origin_
};

}  // namespace

StatusOr<std::vector<ExpandedLayer>> ExpandLayers(const NetConfig& config,
                                                  std::string* error_origin) {
  Expander expander(config.input_channels());
  for (int i = 0; i < config.layer_size(); ++i) {
    const Status status = expander.Add(config.layer(i), "", fmt::format("layer[{}]", i), 0);
    if (!status.ok()) {
      *error_origin = expander.origin();
      return status;
    }
  }
  expander.ResolveAliases();
  expander.SetConvolutionPolicy(config.convolution());
  return expander.Take();
}

std::string KindName(const LayerConfig& layer) {
  if (layer.kind_case() == LayerConfig::KIND_NOT_SET) return {};
  return LayerConfig::descriptor()->FindFieldByNumber(layer.kind_case())->name();
}

}  // namespace ringtail
