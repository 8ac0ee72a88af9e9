// Which class stands for which kind of layer. To add a kind: a message and a oneof entry in
// net.proto, a header and source, a case here, a row in tests/layers/gradient_check_test.cc (which
// fails without it).
#include <fmt/core.h>

#include "layers/concat.h"
#include "layers/convolution.h"
#include "layers/drop_connect.h"
#include "layers/dropout.h"
#include "layers/expand.h"
#include "layers/flatten.h"
#include "layers/highway_gate.h"
#include "layers/layer.h"
#include "layers/linear.h"
#include "layers/lrn.h"
#include "layers/net.pb.h"
#include "layers/softmax_cross_entropy.h"

namespace ringtail {

StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerConfig& config, uint64_t key) {
  std::unique_ptr<Layer> layer;
  switch (config.kind_case()) {
    case LayerConfig::kConvolution:
      layer = std::make_unique<ConvolutionLayer>(config.convolution());
      break;
    case LayerConfig::kLinear:
      layer = std::make_unique<LinearLayer>(config.linear());
      break;
    case LayerConfig::kDropout:
      layer = std::make_unique<DropoutLayer>(config.dropout(), key);
      break;
    case LayerConfig::kDropConnect:
      layer = std::make_unique<DropConnectLayer>(config.drop_connect(), key);
      break;
    case LayerConfig::kLrn:
      layer = std::make_unique<LrnLayer>(config.lrn());
      break;
    case LayerConfig::kConcat:
      layer = std::make_unique<ConcatLayer>(config.concat());
      break;
    case LayerConfig::kHighwayGate:
      layer = std::make_unique<HighwayGateLayer>(config.highway_gate());
      break;
    case LayerConfig::kFlatten:
      layer = std::make_unique<FlattenLayer>();
      break;
    case LayerConfig::kSoftmaxCrossEntropy:
      layer = std::make_unique<SoftmaxCrossEntropyLayer>(config.softmax_cross_entropy());
      break;
    case LayerConfig::KIND_NOT_SET:
      return InvalidArgument("it has no kind; write for example relu {} inside");
    default:
      return Internal(
          fmt::format("{} is not a primitive layer; expand the net first", KindName(config)));
  }
  return layer;
}

}  // namespace ringtail
