// The layers of a network as nodes of ONNX. A tensor has the name of its layer, a parameter its own
// ("conv1.weight").
// Thread-safety: none. Errors: InvalidArgument, without the layer's name, for what ONNX's operator
// set 9 cannot express.
#ifndef RINGTAIL_APPS_EXPORT_ONNX_LAYERS_H_
#define RINGTAIL_APPS_EXPORT_ONNX_LAYERS_H_

#include <string>
#include <vector>

#include "apps/export/onnx_graph.h"
#include "core/status.h"
#include "layers/blob.h"
#include "layers/net/model.h"

namespace ringtail {

// A tensor of the graph. Linear layers make tensors of two dimensions.
struct OnnxTensor {
  std::string name;
  BlobDesc shape;
  bool is_flat = false;  // (N, C*H*W), not (N, C, H, W)
};

// Appends node `index` of the model's graph, its fused activation, too, and returns its output of
// shape `dst`. `inputs` are the outputs of the nodes that it reads.
StatusOr<OnnxTensor> AppendLayer(const Model& model, int index,
                                 const std::vector<OnnxTensor>& inputs, const BlobDesc& dst,
                                 OnnxGraph* graph);

// (N, C*H*W)
OnnxTensor Flat(const OnnxTensor& tensor, OnnxGraph* graph);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXPORT_ONNX_LAYERS_H_
