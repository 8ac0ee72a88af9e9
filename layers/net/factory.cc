// The class of each kind of layer. layers/README.md has the steps to add one.
#include <fmt/core.h>

#include "layers/activations/activations.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/convolution/convolution_layer.h"
#include "layers/drop_connect.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/highway_gate.h"
#include "layers/layer.h"
#include "layers/linear/linear.h"
#include "layers/lrn.h"
#include "layers/multiply.h"
#include "layers/net.pb.h"
#include "layers/net/expand.h"
#include "layers/pooling/average_pools.h"
#include "layers/pooling/max_pool.h"
#include "layers/softmax_cross_entropy.h"

namespace ringtail {
namespace {

template <typename Kind, typename... Args>
StatusOr<std::unique_ptr<Layer>> Make(const Args&... args) {
  return std::unique_ptr<Layer>(std::make_unique<Kind>(args...));
}

}  // namespace

StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerConfig& config, uint64_t key) {
  switch (config.kind_case()) {
    case LayerConfig::kConvolution:
      return Make<ConvolutionLayer>(config.convolution());
    case LayerConfig::kLinear:
      return Make<LinearLayer>(config.linear());
    case LayerConfig::kBatchNorm:
      return Make<BatchNormLayer>(config.batch_norm());
    case LayerConfig::kRelu:
      return Make<ReluLayer>(config.relu());
    case LayerConfig::kRelu6:
      return Make<Relu6Layer>(config.relu6());
    case LayerConfig::kLeakyRelu:
      return Make<LeakyReluLayer>(config.leaky_relu());
    case LayerConfig::kSigmoid:
      return Make<SigmoidLayer>(config.sigmoid());
    case LayerConfig::kTanh:
      return Make<TanhLayer>(config.tanh());
    case LayerConfig::kMaxPool:
      return Make<MaxPoolLayer>(config.max_pool());
    case LayerConfig::kAveragePool:
      return Make<AveragePoolLayer>(config.average_pool());
    case LayerConfig::kGlobalAveragePool:
      return Make<GlobalAveragePoolLayer>(config.global_average_pool());
    case LayerConfig::kAdaptiveAveragePool:
      return Make<AdaptiveAveragePoolLayer>(config.adaptive_average_pool());
    case LayerConfig::kDropout:
      return Make<DropoutLayer>(config.dropout(), key);
    case LayerConfig::kDropConnect:
      return Make<DropConnectLayer>(config.drop_connect(), key);
    case LayerConfig::kLrn:
      return Make<LrnLayer>(config.lrn());
    case LayerConfig::kAdd:
      return Make<AddLayer>(config.add());
    case LayerConfig::kMultiply:
      return Make<MultiplyLayer>(config.multiply());
    case LayerConfig::kConcat:
      return Make<ConcatLayer>(config.concat());
    case LayerConfig::kFlatten:
      return Make<FlattenLayer>();
    case LayerConfig::kHighwayGate:
      return Make<HighwayGateLayer>(config.highway_gate());
    case LayerConfig::kSoftmaxCrossEntropy:
      return Make<SoftmaxCrossEntropyLayer>(config.softmax_cross_entropy());
    case LayerConfig::KIND_NOT_SET:
      return InvalidArgument("it has no kind; write for example relu {} inside");
    default:
      return Internal(
          fmt::format("{} is not a primitive layer; expand the net first", KindName(config)));
  }
}

}  // namespace ringtail
