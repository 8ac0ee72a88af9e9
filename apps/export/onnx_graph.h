// Builds the graph of an ONNX file, node by node (operator set 9, the oldest that readers still
// share and the newest that OpenCV 4.6 reads everywhere).
// Thread-safety: none.
#ifndef RINGTAIL_APPS_EXPORT_ONNX_GRAPH_H_
#define RINGTAIL_APPS_EXPORT_ONNX_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ringtail {

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

// A node whose attributes may still be added.
class OnnxNode {
 public:
  explicit OnnxNode(onnx::NodeProto* node) : node_(node) {}
  OnnxNode& Int(const std::string& name, int64_t value);
  OnnxNode& Ints(const std::string& name, const std::vector<int64_t>& values);
  OnnxNode& Float(const std::string& name, float value);

 private:
  onnx::NodeProto* node_;
};

class OnnxGraph {
 public:
  // `graph` must outlive this.
  explicit OnnxGraph(onnx::GraphProto* graph) : graph_(graph) {}

  // A node whose name and output are `output`.
  OnnxNode Add(const std::string& op_type, const std::vector<std::string>& inputs,
               const std::string& output);
  // Constant data by name; returns the name.
  std::string Constant(const std::string& name, const std::vector<int64_t>& shape,
                       std::span<const float> values);
  void Input(const std::string& name, const std::vector<int64_t>& shape);   // -1: a batch, "N"
  void Output(const std::string& name, const std::vector<int64_t>& shape);  // likewise

 private:
  onnx::GraphProto* graph_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXPORT_ONNX_GRAPH_H_
