// The composite layers of ResNet and MobileNetV2, written out as primitive layers with
// torchvision's names.
#ifndef RINGTAIL_LAYERS_NET_RESIDUAL_STAGE_H_
#define RINGTAIL_LAYERS_NET_RESIDUAL_STAGE_H_

#include <string>
#include <vector>

#include "core/config/field_check.h"
#include "core/status.h"
#include "layers/net.pb.h"

namespace ringtail {

// He et al. 2016, figure 5. One block, name "layer2.0", f = channels:
//
//   BASIC       conv1 3x3 f, s -> bn1 -> relu -> conv2 3x3 f -> bn2
//   BOTTLENECK  conv1 1x1 f -> bn1 -> relu -> conv2 3x3 f, s -> bn2 -> relu -> conv3 1x1 4f -> bn3
//
//   input -+-> BASIC or BOTTLENECK ---------------------------+-> add -> relu
//          |                                                  |
//          +-> downsample.0 1x1, s -> downsample.1 batch norm +   (where the shape changes)
//
// The first block of a stage projects its input; the others add it as it is. A stage whose shape
// does not change (stride 1 and as many channels as come in) needs no projection: `input_channels`
// says what comes in.
StatusOr<std::vector<LayerConfig>> ExpandResidualStage(const LayerConfig& stage,
                                                       int64_t input_channels,
                                                       const FieldCheck& layer_fields);

// Sandler et al. 2018, figure 4d. One block, name "features.2", e = expansion * input channels:
//
//   input -> conv.0 1x1 e, bn, relu6 -> conv.1 depthwise 3x3, s, bn, relu6
//         -> conv.2 1x1 c -> conv.3 bn -> (+ input)
StatusOr<std::vector<LayerConfig>> ExpandInvertedResidualStage(const LayerConfig& stage,
                                                               int64_t input_channels,
                                                               const FieldCheck& layer_fields);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_RESIDUAL_STAGE_H_
