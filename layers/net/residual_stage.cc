#include "layers/net/residual_stage.h"

#include <fmt/core.h>

#include "core/check.h"

namespace ringtail {
namespace {

// Appends layers in a chain: each reads the previous one unless its input is given.
class Chain {
 public:
  Chain(std::vector<LayerConfig>* out, std::string prefix, std::string input)
      : out_(out), prefix_(std::move(prefix)), last_(std::move(input)) {}

  void Convolution(const std::string& name, int64_t channels, int kernel, int stride) {
    ConvolutionConfig* c = Add(name)->mutable_convolution();
    c->set_out_channels(static_cast<int32_t>(channels));
    c->add_kernel(kernel);
    c->add_stride(stride);
    c->add_padding(kernel / 2);
    c->set_bias(false);
    c->mutable_weight_init()->mutable_he_normal()->set_fan(HeInit::FAN_OUT);
  }
  void Depthwise(const std::string& name, int stride) {
    ConvolutionConfig* c = Add(name)->mutable_convolution();
    c->set_depthwise(true);
    c->add_kernel(3);
    c->add_stride(stride);
    c->add_padding(1);
    c->set_bias(false);
    c->mutable_weight_init()->mutable_he_normal()->set_fan(HeInit::FAN_OUT);
  }
  void BatchNorm(const std::string& name, bool zero_gamma = false) {
    BatchNormConfig* b = Add(name)->mutable_batch_norm();
    if (zero_gamma) b->mutable_weight_init()->mutable_constant()->set_value(0);
  }
  void AveragePool(const std::string& name, int size) {
    PoolConfig* p = Add(name)->mutable_average_pool();
    p->add_kernel(size);
    p->set_rounding(PoolConfig::CEIL);
    p->set_count_padding(false);
  }
  void Relu(const std::string& name) { Add(name)->mutable_relu(); }
  void Relu6(const std::string& name) { Add(name)->mutable_relu6(); }
  void AddWith(const std::string& name, const std::string& other) {
    LayerConfig* layer = Add(name);
    layer->add_input(other);
    layer->mutable_add();
  }
  const std::string& last() const { return last_; }

 private:
  LayerConfig* Add(const std::string& name) {
    LayerConfig& layer = out_->emplace_back();
    layer.set_name(prefix_ + "." + name);
    layer.add_input(last_);
    last_ = layer.name();
    return &layer;
  }

  std::vector<LayerConfig>* out_;
  std::string prefix_, last_;
};

// One block; returns the name of its output.
std::string AddResidualBlock(const ResidualStageConfig& config, const std::string& prefix,
                             const std::string& input, int64_t input_channels, int stride,
                             std::vector<LayerConfig>* out) {
  const bool bottleneck = config.block() == ResidualStageConfig::BOTTLENECK;
  const int64_t width = config.channels(), channels = bottleneck ? 4 * width : width;
  Chain main(out, prefix, input);
  if (bottleneck) {
    main.Convolution("conv1", width, 1, 1);
    main.BatchNorm("bn1");
    main.Relu("relu1");
    main.Convolution("conv2", width, 3, stride);
    main.BatchNorm("bn2");
    main.Relu("relu2");
    main.Convolution("conv3", channels, 1, 1);
    main.BatchNorm("bn3", config.zero_gamma());
  } else {
    main.Convolution("conv1", width, 3, stride);
    main.BatchNorm("bn1");
    main.Relu("relu1");
    main.Convolution("conv2", width, 3, 1);
    main.BatchNorm("bn2", config.zero_gamma());
  }
  Chain shortcut(out, prefix + ".downsample", input);
  if (stride != 1 || channels != input_channels) {
    const bool pool = config.projection() == ResidualStageConfig::AVERAGE_POOL_1X1 && stride > 1;
    if (pool) shortcut.AveragePool("pool", stride);
    shortcut.Convolution("0", channels, 1, pool ? 1 : stride);
    shortcut.BatchNorm("1");
  }
  main.AddWith("add", shortcut.last());
  main.Relu("relu");
  return main.last();
}

std::string AddInvertedResidualBlock(int64_t expansion, int64_t channels, const std::string& prefix,
                                     const std::string& input, int64_t input_channels, int stride,
                                     std::vector<LayerConfig>* out) {
  Chain main(out, prefix + ".conv", input);
  int next = 0;  // torchvision numbers the parts of a block
  if (expansion != 1) {
    main.Convolution("0.0", expansion * input_channels, 1, 1);
    main.BatchNorm("0.1");
    main.Relu6("0.2");
    next = 1;
  }
  main.Depthwise(fmt::format("{}.0", next), stride);
  main.BatchNorm(fmt::format("{}.1", next));
  main.Relu6(fmt::format("{}.2", next));
  main.Convolution(fmt::format("{}", next + 1), channels, 1, 1);
  main.BatchNorm(fmt::format("{}", next + 2));
  if (stride == 1 && channels == input_channels) main.AddWith("add", input);
  return main.last();
}

constexpr int64_t kMaxChannels = 1 << 16, kMaxBlocks = 1000, kMaxStride = 64;

}  // namespace

StatusOr<std::vector<LayerConfig>> ExpandResidualStage(const LayerConfig& stage,
                                                       int64_t input_channels,
                                                       const FieldCheck& layer_fields) {
  const ResidualStageConfig& config = stage.residual_stage();
  const FieldCheck fields = layer_fields.Within("residual_stage");
  if (!config.has_channels()) return fields.Error("channels", "channels is missing");
  RT_RETURN_IF_ERROR(fields.Between("channels", config.channels(), 1, kMaxChannels));
  RT_RETURN_IF_ERROR(fields.Between("blocks", config.blocks(), 1, kMaxBlocks));
  RT_RETURN_IF_ERROR(fields.Between("stride", config.stride(), 1, kMaxStride));
  RT_CHECK(stage.input_size() == 1, "a stage reads one layer");
  const bool bottleneck = config.block() == ResidualStageConfig::BOTTLENECK;
  const int64_t channels = config.channels() * (bottleneck ? 4 : 1);
  std::vector<LayerConfig> out;
  std::string input = stage.input(0);
  for (int i = 0; i < config.blocks(); ++i) {
    input =
        AddResidualBlock(config, fmt::format("{}.{}", stage.name(), i), input,
                         i == 0 ? input_channels : channels, i == 0 ? config.stride() : 1, &out);
  }
  return out;
}

StatusOr<std::vector<LayerConfig>> ExpandInvertedResidualStage(const LayerConfig& stage,
                                                               int64_t input_channels,
                                                               const FieldCheck& layer_fields) {
  const InvertedResidualStageConfig& config = stage.inverted_residual_stage();
  const FieldCheck fields = layer_fields.Within("inverted_residual_stage");
  if (!config.has_channels()) return fields.Error("channels", "channels is missing");
  RT_RETURN_IF_ERROR(fields.Between("channels", config.channels(), 1, kMaxChannels));
  RT_RETURN_IF_ERROR(fields.Between("expansion", config.expansion(), 1, kMaxStride));
  RT_RETURN_IF_ERROR(fields.Between("blocks", config.blocks(), 1, kMaxBlocks));
  RT_RETURN_IF_ERROR(fields.Between("stride", config.stride(), 1, kMaxStride));
  RT_RETURN_IF_ERROR(fields.Between("first", config.first(), 0, kMaxBlocks));
  RT_CHECK(stage.input_size() == 1, "a stage reads one layer");
  std::vector<LayerConfig> out;
  std::string input = stage.input(0);
  const std::string& block_name = config.has_block_name() ? config.block_name() : stage.name();
  for (int i = 0; i < config.blocks(); ++i) {
    input = AddInvertedResidualBlock(
        config.expansion(), config.channels(), fmt::format("{}.{}", block_name, config.first() + i),
        input, i == 0 ? input_channels : config.channels(), i == 0 ? config.stride() : 1, &out);
  }
  return out;
}

}  // namespace ringtail
