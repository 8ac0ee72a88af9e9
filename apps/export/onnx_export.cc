#include "apps/export/onnx_export.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/export/onnx.pb.h"
#include "apps/export/onnx_layers.h"
#include "apps/version.h"
#include "core/text/printable.h"
#include "data/render.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

constexpr int64_t kIrVersion = 4, kOperatorSet = 9;
constexpr char kInput[] = "images", kNormalized[] = "normalize", kProbabilities[] = "probabilities";

StatusOr<std::vector<BlobDesc>> ShapesOf(const Model& model, int64_t image_size) {
  std::vector<std::unique_ptr<Layer>> layers;
  for (const Node& node : model.graph().nodes()) {
    RT_ASSIGN_OR_RETURN(auto layer, node.Instantiate());
    layers.push_back(std::move(layer));
  }
  int failed = 0;
  RT_ASSIGN_OR_RETURN(
      const auto shapes,
      InferShapes(model.graph(),
                  {.N = 1, .C = model.input_channels(), .H = image_size, .W = image_size}, layers,
                  &failed));
  std::vector<BlobDesc> blobs;
  blobs.reserve(shapes.size());
  for (const ShapeInfo& shape : shapes) blobs.push_back(shape.dst);
  return blobs;
}

BlobDesc ImagesOf(const Model& model, int64_t image_size) {
  return {.N = 1, .C = model.input_channels(), .H = image_size, .W = image_size};
}

// Weights fit one size only where a linear layer reads the whole image.
Status CheckParameterShapes(const Model& model, int64_t image_size) {
  RT_ASSIGN_OR_RETURN(const auto blobs, ShapesOf(model, image_size));
  for (int i = 0; i < model.graph().size(); ++i) {
    const Node& node = model.graph().nodes()[i];
    if (!node.config->has_linear() && !node.config->has_drop_connect()) continue;
    const int input = node.inputs[0];
    const BlobDesc src = input == kImagesInput ? ImagesOf(model, image_size) : blobs[input];
    if (src.C * src.plane() != model.parameters(i)[0]->spec.shape[1]) {
      return InvalidArgument(fmt::format(
          "layer '{}' was trained for another image size than {}; leave out --image-size",
          node.name, image_size));
    }
  }
  return OkStatus();
}

void AppendNormalization(const DataConfig& data, OnnxGraph* graph) {
  const Normalization normalization = NormalizationFromConfig(data);
  graph
      ->Add("Conv",
            {kInput, graph->Constant("normalize.weight", {kChannels, 1, 1, 1}, normalization.scale),
             graph->Constant("normalize.bias", {kChannels}, normalization.offset)},
            kNormalized)
      .Ints("kernel_shape", {1, 1})
      .Int("group", kChannels);
}

Status AppendLayers(const Model& model, int64_t image_size, OnnxGraph* graph) {
  RT_ASSIGN_OR_RETURN(const auto blobs, ShapesOf(model, image_size));
  std::vector<OnnxTensor> tensors;
  const OnnxTensor images{.name = kNormalized,
                          .shape = {.N = 1, .C = kChannels, .H = image_size, .W = image_size}};
  for (int i = 0; i + 1 < model.graph().size(); ++i) {  // all but the loss
    const Node& node = model.graph().nodes()[i];
    std::vector<OnnxTensor> inputs;
    for (const int input : node.inputs) {
      inputs.push_back(input == kImagesInput ? images : tensors[input]);
    }
    auto tensor = AppendLayer(model, i, inputs, blobs[i], graph);
    if (!tensor.ok()) return tensor.status().Annotate(fmt::format("layer '{}'", node.name));
    tensors.push_back(*std::move(tensor));
  }
  const OnnxTensor logits = Flat(tensors[model.graph().logits()], graph);
  graph->Add("Softmax", {logits.name}, kProbabilities).Int("axis", 1);
  return OkStatus();
}

void AddMetadata(const TrainedModel& trained, int64_t image_size, onnx::ModelProto* model) {
  const DataConfig& data = trained.loaded.config.data();
  const Normalization normalization = NormalizationFromConfig(data);
  std::vector<float> mean, std;
  for (int c = 0; c < kChannels; ++c) {
    std.push_back(1 / normalization.scale[c]);
    mean.push_back(-normalization.offset[c] / normalization.scale[c]);
  }
  const auto add = [&](const char* key, const std::string& value) {
    auto* const entry = model->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("class_names", nlohmann::json(trained.class_names)
                         .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  add("image_size", fmt::format("{}", image_size));
  add("crop_fraction", fmt::format("{}", data.evaluation().crop_fraction()));
  add("mean", fmt::format("{:.6g}", fmt::join(mean, " ")));  // of pixels; inside the graph
  add("std", fmt::format("{:.6g}", fmt::join(std, " ")));
  add("Image.BitmapPixelFormat", "Rgb8");
  add("Image.ColorSpaceGamma", "SRGB");
  add("Image.NominalPixelRange", "NominalRange_0_255");
}

// In quotes, for Python and C++ alike.
std::string Literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

// Prints the probabilities, in Python, beside the names of their classes unless these are many.
std::string PrintLine(const std::vector<std::string>& class_names) {
  constexpr size_t kMostNames = 20;
  if (class_names.empty() || class_names.size() > kMostNames) {
    return "print(net.forward())  # in the order of class_names in the file's metadata";
  }
  std::string list;
  for (const std::string& name : class_names) {
    list += (list.empty() ? "" : ", ") + Literal(Printable(name));
  }
  return fmt::format("print(dict(zip([{}], net.forward()[0])))", list);
}

}  // namespace

StatusOr<std::string> OnnxModel(const TrainedModel& trained, int64_t image_size) {
  const Model& model = *trained.model;
  if (model.input_channels() != kChannels) {
    return InvalidArgument(
        fmt::format("the network reads {} channels, not R, G and B", model.input_channels()));
  }
  constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max() - (int64_t{1} << 24U);
  if (std::ssize(model.arena().values()) * int64_t{sizeof(float)} > kMostBytes) {
    return InvalidArgument("the weights take more than 2 GB, which one ONNX file cannot hold");
  }
  RT_RETURN_IF_ERROR(CheckParameterShapes(model, image_size));
  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("ringtail");
  file.set_producer_version(kRingtailVersion);
  file.add_opset_import()->set_version(kOperatorSet);
  file.mutable_opset_import(0)->set_domain("");
  file.mutable_graph()->set_name(
      trained.loaded.config.net().name().empty() ? "network" : trained.loaded.config.net().name());
  OnnxGraph graph(file.mutable_graph());
  graph.Input(kInput, {-1, kChannels, image_size, image_size});
  AppendNormalization(trained.loaded.config.data(), &graph);
  RT_RETURN_IF_ERROR(AppendLayers(model, image_size, &graph));
  graph.Output(kProbabilities, {-1, model.num_classes()});
  AddMetadata(trained, image_size, &file);
  return file.SerializeAsString();
}

std::string OnnxUsage(const std::string& path, const DataConfig& data, int64_t image_size,
                      const std::vector<std::string>& class_names) {
  const auto side = static_cast<int64_t>(
      std::lround(static_cast<double>(image_size) / data.evaluation().crop_fraction()));
  return fmt::format(R"(Python:
  import cv2; net = cv2.dnn.readNetFromONNX({0}); image = cv2.imread("image.jpg")
  scale = {2} / min(image.shape[:2]); image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
  y, x = ((n - {1}) // 2 for n in image.shape[:2])
  net.setInput(cv2.dnn.blobFromImage(image[y:y+{1}, x:x+{1}], swapRB=True))
  {3}
C++:
  auto net = cv::dnn::readNetFromONNX({0}); cv::Mat image = cv::imread("image.jpg");
  double scale = {2}.0 / std::min(image.rows, image.cols);
  cv::resize(image, image, {{}}, scale, scale, cv::INTER_AREA);
  net.setInput(cv::dnn::blobFromImage(image(cv::Rect((image.cols - {1}) / 2, (image.rows - {1}) / 2, {1}, {1})), 1, {{}}, {{}}, true));
  std::cout << net.forward() << '\n';
)",
                     Literal(path), image_size, side, PrintLine(class_names));
}

}  // namespace ringtail
