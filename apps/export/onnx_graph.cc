#include "apps/export/onnx_graph.h"

#include <bit>

#include "apps/export/onnx.pb.h"

namespace ringtail {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

onnx::AttributeProto* AddAttribute(const std::string& name, onnx::AttributeProto::Type type,
                                   onnx::NodeProto* node) {
  onnx::AttributeProto* const attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

void SetInfo(const std::string& name, const std::vector<int64_t>& shape,
             onnx::ValueInfoProto* info) {
  info->set_name(name);
  auto* const tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t size : shape) {
    auto* const dimension = tensor->mutable_shape()->add_dim();
    if (size < 0) {
      dimension->set_dim_param("N");
    } else {
      dimension->set_dim_value(size);
    }
  }
}

}  // namespace

OnnxNode& OnnxNode::Int(const std::string& name, int64_t value) {
  AddAttribute(name, onnx::AttributeProto::INT, node_)->set_i(value);
  return *this;
}

OnnxNode& OnnxNode::Ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto* const attribute = AddAttribute(name, onnx::AttributeProto::INTS, node_);
  attribute->mutable_ints()->Add(values.begin(), values.end());
  return *this;
}

OnnxNode& OnnxNode::Float(const std::string& name, float value) {
  AddAttribute(name, onnx::AttributeProto::FLOAT, node_)->set_f(value);
  return *this;
}

OnnxNode OnnxGraph::Add(const std::string& op_type, const std::vector<std::string>& inputs,
                        const std::string& output) {
  onnx::NodeProto* const node = graph_->add_node();
  node->set_op_type(op_type);
  node->set_name(output);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return OnnxNode(node);
}

std::string OnnxGraph::Constant(const std::string& name, const std::vector<int64_t>& shape,
                                std::span<const float> values) {
  onnx::TensorProto* const tensor = graph_->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->mutable_dims()->Add(shape.begin(), shape.end());
  tensor->set_raw_data(values.data(), values.size_bytes());
  return name;
}

void OnnxGraph::Input(const std::string& name, const std::vector<int64_t>& shape) {
  SetInfo(name, shape, graph_->add_input());
}

void OnnxGraph::Output(const std::string& name, const std::vector<int64_t>& shape) {
  SetInfo(name, shape, graph_->add_output());
}

}  // namespace ringtail
