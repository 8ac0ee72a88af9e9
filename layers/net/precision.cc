#include "layers/net/precision.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/text/counted.h"
#include "layers/element_types/through_f32_layer.h"
#include "layers/net/graph.h"
#include "layers/net/net.h"

namespace ringtail {

std::vector<BlobType> DstTypes(const Graph& graph, BlobType wanted) {
  std::vector<BlobType> types;
  for (const Node& node : graph.nodes()) {
    const LayerConfig& config = *node.config;
    types.push_back(config.has_precision() ? BlobTypeOf(config.precision()) : wanted);
  }
  types[graph.logits()] = types.back() = BlobType::kF32;
  return types;
}

std::vector<BlobType> DstTypes(const Model& model) {
  if (model.whole() == nullptr) return DstTypes(model.graph(), model.blob_type());
  const std::vector<BlobType> whole = DstTypes(model.whole()->graph(), model.blob_type());
  const StageRequest& stage = model.stage();
  std::vector<BlobType> types(whole.begin() + std::max(stage.first - 1, 0),
                              whole.begin() + stage.last + 1);
  if (!model.graph().has_loss()) types.push_back(BlobType::kF32);  // what sends has no blob
  return types;
}

std::vector<bool> PutThroughF32(const Graph& graph, std::span<const BlobType> dst_types,
                                std::span<std::unique_ptr<Layer>> layers) {
  std::vector<bool> through;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<BlobType> src;
    for (const int input : graph.nodes()[i].inputs) {
      src.push_back(input == kImagesInput ? BlobType::kF32 : dst_types[input]);
    }
    through.push_back(!layers[i]->RunsOn(src, dst_types[i]));
    if (through[i]) layers[i] = std::make_unique<ThroughF32Layer>(std::move(layers[i]));
  }
  return through;
}

std::string DescribePrecision(std::span<const LayerInfo> layers) {
  const auto is_bf16 = [](const LayerInfo& layer) { return layer.dst.type == BlobType::kBf16; };
  const auto count = [&](auto predicate) { return std::ranges::count_if(layers, predicate); };
  const int64_t blobs = count(is_bf16);
  if (blobs == 0) return "float32";
  std::string products;
  for (const auto& [kind, noun] :
       {std::pair{"convolution", "convolution"}, {"linear", "linear layer"}}) {
    const auto is_kind = [&, name = std::string_view(kind)](const LayerInfo& layer) {
      return layer.kind.starts_with(name) && is_bf16(layer);
    };
    const int64_t with_products = count([&](const LayerInfo& layer) {
      return is_kind(layer) && layer.implementation.find("bf16") != std::string::npos;
    });
    if (with_products == 0) continue;
    products += fmt::format("{}{} of {}", products.empty() ? "" : " and ", with_products,
                            Counted(count(is_kind), noun));
  }
  const std::string stored =
      fmt::format("bfloat16 outputs of {} of {}; float32 weights, statistics and sums", blobs,
                  Counted(std::ssize(layers), "layer"));
  if (products.empty()) return stored + "; all products in float32: for memory, not for speed";
  return fmt::format("{}; bfloat16 products in {}", stored, products);
}

}  // namespace ringtail
