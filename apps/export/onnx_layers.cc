#include "apps/export/onnx_layers.h"

#include <fmt/core.h>

#include "apps/export/onnx_pooling.h"
#include "core/check.h"
#include "layers/net/graph.h"
#include "layers/window.h"

namespace ringtail {
namespace {

struct Appending {
  const Model& model;
  const Node& node;
  const std::vector<OnnxTensor>& inputs;
  const BlobDesc& dst;
  OnnxGraph* graph;
  std::string output;  // the name of the tensor to write

  const LayerConfig& config() const { return *node.config; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const OnnxTensor& input : inputs) all.push_back(input.name);
    return all;
  }
  OnnxNode Add(const std::string& op_type) const { return graph->Add(op_type, names(), output); }

  // The layer's parameter or buffer as a constant; its name.
  std::string Parameter(const char* name, float factor = 1) const {
    const std::string full = node.name + "." + name;
    const auto* found = model.arena().FindParameter(full);
    if (found == nullptr) found = model.arena().FindBuffer(full);
    RT_CHECK(found != nullptr, full);
    if (factor == 1) return graph->Constant(full, found->spec.shape, found->value());
    std::vector<float> scaled(found->value().begin(), found->value().end());
    for (float& value : scaled) value *= factor;
    return graph->Constant(full, found->spec.shape, scaled);
  }
};

Status AppendConvolution(const Appending& a) {
  const ConvolutionConfig& config = a.config().convolution();
  std::string ignored;
  RT_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(config.kernel(), config.stride(), config.padding(),
                                 config.dilation(), DefaultStride::kOne, FieldCheck(&ignored)));
  std::vector<std::string> inputs = {a.inputs[0].name, a.Parameter("weight")};
  if (config.bias()) inputs.push_back(a.Parameter("bias"));
  a.graph->Add("Conv", inputs, a.output)
      .Ints("kernel_shape", {window.KH, window.KW})
      .Ints("strides", {window.SH, window.SW})
      .Ints("pads", {window.PT, window.PL, window.PB, window.PR})
      .Ints("dilations", {window.DH, window.DW})
      .Int("group", config.depthwise() ? a.inputs[0].shape.C : config.groups());
  return OkStatus();
}

Status AppendLinear(const Appending& a, const LinearConfig& config, float factor) {
  std::vector<std::string> inputs = {Flat(a.inputs[0], a.graph).name,
                                     a.Parameter("weight", factor)};
  if (config.bias()) {
    inputs.push_back(a.Parameter("bias"));
  } else {
    const std::vector<float> zeros(a.dst.C);
    inputs.push_back(a.graph->Constant(a.node.name + ".no_bias", {a.dst.C}, zeros));
  }
  a.graph->Add("Gemm", inputs, a.output).Int("transB", 1);
  return OkStatus();
}

Status AppendBatchNorm(const Appending& a) {
  a.graph
      ->Add("BatchNormalization",
            {a.inputs[0].name, a.Parameter("weight"), a.Parameter("bias"),
             a.Parameter("running_mean"), a.Parameter("running_var")},
            a.output)
      .Float("epsilon", a.config().batch_norm().epsilon());
  return OkStatus();
}

// Two inputs at a time: that is what all readers know.
Status AppendSum(const Appending& a) {
  std::string sum = a.inputs[0].name;
  for (size_t i = 1; i < a.inputs.size(); ++i) {
    const bool last = i + 1 == a.inputs.size();
    const std::string output = last ? a.output : fmt::format("{}.sum{}", a.output, i);
    a.graph->Add("Add", {sum, a.inputs[i].name}, output);
    sum = output;
  }
  return OkStatus();
}

// s h + (1 - s) x, s = sigmoid(t), and 1 - s = sigmoid(-t)
Status AppendHighwayGate(const Appending& a) {
  const std::string& name = a.output;
  a.graph->Add("Sigmoid", {a.inputs[1].name}, name + ".open");
  a.graph->Add("Neg", {a.inputs[1].name}, name + ".negative");
  a.graph->Add("Sigmoid", {name + ".negative"}, name + ".closed");
  a.graph->Add("Mul", {a.inputs[0].name, name + ".open"}, name + ".new");
  a.graph->Add("Mul", {a.inputs[2].name, name + ".closed"}, name + ".old");
  a.graph->Add("Add", {name + ".new", name + ".old"}, name);
  return OkStatus();
}

Status AppendLrn(const Appending& a) {
  const LrnConfig& config = a.config().lrn();
  a.Add("LRN")
      .Int("size", config.size())
      .Float("alpha", config.alpha())
      .Float("beta", config.beta())
      .Float("bias", config.k());
  return OkStatus();
}

Status AppendKind(const Appending& a) {
  switch (a.config().kind_case()) {
    case LayerConfig::kConvolution:
      return AppendConvolution(a);
    case LayerConfig::kLinear:
      return AppendLinear(a, a.config().linear(), 1);
    case LayerConfig::kDropConnect:  // the mean weights
      return AppendLinear(a, a.config().drop_connect().linear(),
                          1 - a.config().drop_connect().rate());
    case LayerConfig::kBatchNorm:
      return AppendBatchNorm(a);
    case LayerConfig::kRelu:
      a.Add("Relu");
      return OkStatus();
    case LayerConfig::kRelu6:
      a.Add("Clip").Float("min", 0).Float("max", 6);
      return OkStatus();
    case LayerConfig::kLeakyRelu:
      a.Add("LeakyRelu").Float("alpha", a.config().leaky_relu().slope());
      return OkStatus();
    case LayerConfig::kSigmoid:
      a.Add("Sigmoid");
      return OkStatus();
    case LayerConfig::kTanh:
      a.Add("Tanh");
      return OkStatus();
    case LayerConfig::kMaxPool:
      return AppendPool("MaxPool", a.config().max_pool(), a.inputs[0].shape, a.dst,
                        a.inputs[0].name, a.output, a.graph);
    case LayerConfig::kAveragePool:
      return AppendPool("AveragePool", a.config().average_pool(), a.inputs[0].shape, a.dst,
                        a.inputs[0].name, a.output, a.graph);
    case LayerConfig::kGlobalAveragePool:
      a.Add("GlobalAveragePool");
      return OkStatus();
    case LayerConfig::kAdaptiveAveragePool:
      AppendAdaptivePool(a.inputs[0].shape, a.dst, a.inputs[0].name, a.output, a.graph);
      return OkStatus();
    case LayerConfig::kLrn:
      return AppendLrn(a);
    case LayerConfig::kAdd:
      return AppendSum(a);
    case LayerConfig::kMultiply:
      a.Add("Mul");
      return OkStatus();
    case LayerConfig::kConcat:
      a.Add("Concat").Int("axis", 1);
      return OkStatus();
    case LayerConfig::kHighwayGate:
      return AppendHighwayGate(a);
    default:
      return InvalidArgument(fmt::format("the kind '{}' has no counterpart in ONNX", a.node.kind));
  }
}

bool KeepsShape(const LayerConfig& config) {
  return config.has_relu() || config.has_relu6() || config.has_leaky_relu() ||
         config.has_sigmoid() || config.has_tanh() || config.has_batch_norm();
}

}  // namespace

OnnxTensor Flat(const OnnxTensor& tensor, OnnxGraph* graph) {
  if (tensor.is_flat) return tensor;
  const std::string name = tensor.name + ".flat";
  graph->Add("Flatten", {tensor.name}, name).Int("axis", 1);
  return {.name = name, .shape = tensor.shape, .is_flat = true};
}

StatusOr<OnnxTensor> AppendLayer(const Model& model, int index,
                                 const std::vector<OnnxTensor>& inputs, const BlobDesc& dst,
                                 OnnxGraph* graph) {
  const Node& node = model.graph().nodes()[index];
  const LayerConfig& config = *node.config;
  if (config.has_dropout()) return inputs[0];  // changes nothing outside training
  if (config.has_flatten()) return Flat(inputs[0], graph);
  const bool is_linear = config.has_linear() || config.has_drop_connect();
  const bool takes_flat = is_linear || KeepsShape(config);
  for (const OnnxTensor& input : inputs) {
    if (input.is_flat && !takes_flat) {
      return InvalidArgument(
          "a layer of images reads the output of a linear or flatten layer, "
          "which export does not write");
    }
  }
  OnnxTensor output{.name = node.name,
                    .shape = dst,
                    .is_flat = is_linear || (KeepsShape(config) && inputs[0].is_flat)};
  const bool activates = node.fused != Activation::kNone;
  const std::string own = activates ? node.name + ".linear" : node.name;
  RT_RETURN_IF_ERROR(AppendKind({model, node, inputs, dst, graph, own}));
  if (node.fused == Activation::kRelu) graph->Add("Relu", {own}, output.name);
  if (node.fused == Activation::kRelu6) {
    graph->Add("Clip", {own}, output.name).Float("min", 0).Float("max", 6);
  }
  return output;
}

}  // namespace ringtail
