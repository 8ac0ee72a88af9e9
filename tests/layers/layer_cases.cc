#include "tests/layers/layer_cases.h"

#include <array>

namespace ringtail {
namespace {

constexpr auto kRelu = Activation::kRelu;
constexpr auto kRelu6 = Activation::kRelu6;
constexpr auto kNone = Activation::kNone;

// The largest of a window changes hands when values are closer than this (see DistinctInputs).
constexpr float kPoolDistance = 0x1p-13F;
// One parameter moves so many elements that with a larger step some always meet a kink.
constexpr float kManyKinks = 0x1p-10F;

std::vector<LayerCase> Convolutions() {
  return {
      {"convolution_3x3", "convolution { out_channels: 5 kernel: 3 padding: 1 }", {{3, 3, 7, 5}}},
      {"convolution_wide",
       "convolution { out_channels: 32 kernel: 3 padding: 1 }",
       {{2, 16, 6, 9}}},
      {"convolution_1x1_stride",
       "convolution { out_channels: 17 kernel: 1 stride: 2 bias: false }",
       {{2, 16, 5, 7}}},
      {"convolution_asymmetric",
       "convolution { out_channels: 17 kernel: 3 kernel: 2 stride: 2 stride: 3"
       " padding: 0 padding: 1 padding: 1 padding: 2 }",
       {{1, 5, 9, 8}}},
      {"convolution_dilated",
       "convolution { out_channels: 16 kernel: 3 dilation: 2 dilation: 3 padding: 2 }",
       {{2, 17, 9, 7}}},
      {"convolution_large_kernel",
       "convolution { out_channels: 8 kernel: 7 stride: 2 padding: 3 bias: false }",
       {{1, 3, 15, 13}}},
      {"convolution_whole_image",
       "convolution { out_channels: 3 kernel: 5 kernel: 4 }",
       {{3, 5, 5, 4}}},
      {"convolution_groups", "convolution { out_channels: 6 kernel: 3 groups: 3 }", {{2, 9, 6, 5}}},
      {"convolution_wide_groups",
       "convolution { out_channels: 64 kernel: 3 padding: 1 groups: 2 }",
       {{1, 32, 5, 5}}},
      {"convolution_depthwise",
       "convolution { kernel: 3 padding: 1 depthwise: true }",
       {{2, 17, 7, 6}}},
      {"convolution_depthwise_stride",
       "convolution { kernel: 3 stride: 2 padding: 1 depthwise: true bias: false }",
       {{3, 16, 7, 7}}},
      {"convolution_depthwise_multiplier",
       "convolution { out_channels: 10 kernel: 3 depthwise: true }",
       {{1, 5, 5, 6}}},
      {"convolution_relu",
       "convolution { out_channels: 17 kernel: 3 padding: 1 }",
       {{1, 3, 5, 7}},
       kRelu},
      {"convolution_relu6",
       "convolution { out_channels: 16 kernel: 3 bias: false }",
       {{3, 8, 5, 5}},
       kRelu6,
       -6,
       6},
      {"convolution_depthwise_relu6",
       "convolution { kernel: 3 padding: 1 depthwise: true }",
       {{2, 17, 5, 5}},
       kRelu6,
       -6,
       6},
  };
}

// One row for each algorithm of layers/convolution/, asked for by name: what FASTEST picks is up to
// a stopwatch. Channels fill vectors of 16, and where an algorithm takes others, not.
std::vector<LayerCase> ConvolutionAlgorithms() {
  // 36 multiplications of numbers up to 20 times an input for each 16 results (convolution/README).
  constexpr double kWinograd4 = 8, kWinograd2 = 2, kStrided = 4;
  const auto row = [](const char* name, const std::string& fields, const BlobDesc& src,
                      const char* algorithm, double rounding = 1, Activation fused = kNone) {
    LayerCase row{
        std::string("convolution_") + name, "convolution { " + fields + " }", {src}, fused};
    if (fused == kRelu6) row.low = -6, row.high = 6;
    row.algorithm = algorithm;
    row.rounding = rounding;
    return row;
  };
  const std::string k3 = "kernel: 3 padding: 1 ", deep = k3 + "depthwise: true ";
  return {
      row("onednn", k3 + "out_channels: 32 algorithm: ONEDNN", {2, 16, 6, 9}, "jit"),
      row("winograd_4x4", k3 + "out_channels: 32 algorithm: WINOGRAD_4X4", {2, 16, 6, 9},
          "winograd 4x4 / winograd 4x4 / winograd 4x4", kWinograd4),
      row("winograd_4x4_relu", "kernel: 3 out_channels: 16 bias: false algorithm: WINOGRAD_4X4",
          {1, 32, 9, 7}, "winograd 4x4 / winograd 4x4 / winograd 4x4", kWinograd4, kRelu),
      row("winograd_2x2", k3 + "out_channels: 32 algorithm: WINOGRAD_2X2", {2, 16, 6, 9},
          "winograd 2x2 / winograd 2x2 / winograd 2x2", kWinograd2),
      row("winograd_2x2_relu6",
          "kernel: 3 padding: 2 out_channels: 16 bias: false algorithm: WINOGRAD_2X2",
          {1, 32, 5, 4}, "winograd 2x2 / winograd 2x2 / winograd 2x2", kWinograd2, kRelu6),
      row("winograd_stride_2", k3 + "stride: 2 out_channels: 32 algorithm: WINOGRAD_STRIDE_2",
          {2, 16, 9, 12}, "winograd stride 2 / winograd stride 2 / winograd stride 2", kStrided),
      row("winograd_stride_2_relu",
          "kernel: 3 stride: 2 out_channels: 16 bias: false algorithm: WINOGRAD_STRIDE_2",
          {1, 32, 7, 8}, "winograd stride 2 / winograd stride 2 / winograd stride 2", kStrided,
          kRelu),
      row("depthwise_3x3", deep + "algorithm: DEPTHWISE", {5, 17, 7, 6}, "depthwise:"),
      row("depthwise_5x5_relu6",
          "kernel: 5 stride: 2 padding: 2 depthwise: true bias: false algorithm: DEPTHWISE",
          {2, 16, 9, 7}, "depthwise:", 1, kRelu6),
      row("depthwise_separate", deep + "stride: 2 algorithm: DEPTHWISE_SEPARATE", {5, 17, 7, 6},
          "depthwise:"),
      row("pointwise", "kernel: 1 out_channels: 33 algorithm: POINTWISE", {2, 17, 5, 7},
          "pointwise / pointwise"),
      row("pointwise_relu", "kernel: 1 out_channels: 16 bias: false algorithm: POINTWISE",
          {3, 40, 3, 3}, "pointwise / pointwise", 1, kRelu),
      row("pointwise_separate", "kernel: 1 out_channels: 33 algorithm: POINTWISE_SEPARATE",
          {2, 17, 5, 7}, "pointwise / pointwise / pointwise"),
      row("pointwise_stride", "kernel: 1 stride: 2 out_channels: 17 algorithm: POINTWISE",
          {2, 32, 5, 7}, "pointwise / pointwise / pointwise"),
  };
}

std::vector<LayerCase> LinearLayers() {
  return {
      {"linear_image", "linear { out_features: 5 }", {{3, 17, 3, 2}}},
      {"linear_vector", "linear { out_features: 17 bias: false }", {{1, 33}}},
      {"linear_relu", "linear { out_features: 3 }", {{3, 5, 2, 2}}, kRelu},
      {"linear_relu6", "linear { out_features: 19 }", {{3, 16}}, kRelu6, -6, 6},
      {"drop_connect_image",
       "drop_connect { rate: 0.3 linear { out_features: 5 } }",
       {{3, 17, 2, 3}}},
      {"drop_connect_relu",
       "drop_connect { linear { out_features: 17 bias: false } }",
       {{1, 40}},
       kRelu},
  };
}

std::vector<LayerCase> ElementWise() {
  const std::vector<BlobDesc> odd = {{3, 17, 5, 3}}, one = {{1, 3}};
  return {
      {.name = "relu_image", .config = "relu {}", .src = odd, .kinks = true},
      {.name = "relu_vector", .config = "relu {}", .src = one, .kinks = true},
      {.name = "relu6_image",
       .config = "relu6 {}",
       .src = odd,
       .low = -3,
       .high = 9,
       .kinks = true},
      {.name = "relu6_vector",
       .config = "relu6 {}",
       .src = {{3, 40}},
       .low = -3,
       .high = 9,
       .kinks = true},
      {.name = "leaky_relu_default", .config = "leaky_relu {}", .src = odd, .kinks = true},
      {.name = "leaky_relu_steep",
       .config = "leaky_relu { slope: 0.5 }",
       .src = one,
       .kinks = true},
      {"sigmoid_image", "sigmoid {}", odd, kNone, -4, 4},
      {"sigmoid_vector", "sigmoid {}", one, kNone, -4, 4},
      {"tanh_image", "tanh {}", odd, kNone, -3, 3},
      {"tanh_vector", "tanh {}", one, kNone, -3, 3},
      {"dropout_image", "dropout {}", odd},
      {"dropout_vector", "dropout { rate: 0.2 }", {{3, 37}}},
      {"dropout_small_planes", "dropout { rate: 0.2 }", {{1, 5, 1, 3}}},
      {"add_two", "add {}", {{3, 17, 5, 3}, {3, 17, 5, 3}}},
      {"add_three_relu", "add {}", {{1, 5, 3, 3}, {1, 5, 3, 3}, {1, 5, 3, 3}}, kRelu},
      {"add_relu6", "add {}", {{2, 16, 3, 3}, {2, 16, 3, 3}}, kRelu6, -4, 8},
      {"multiply_image", "multiply {}", {{3, 17, 5, 3}, {3, 17, 5, 3}}},
      {"multiply_vector", "multiply {}", {{1, 3}, {1, 3}}},
      {"highway_gate_image", "highway_gate {}", {{3, 17, 5, 3}, {3, 17, 5, 3}, {3, 17, 5, 3}}},
      {"highway_gate_vector", "highway_gate {}", {{1, 3}, {1, 3}, {1, 3}}, kNone, -4, 4},
  };
}

std::vector<LayerCase> Normalisations() {
  return {
      {"batch_norm_image", "batch_norm {}", {{3, 17, 5, 3}}},
      {"batch_norm_vector", "batch_norm { epsilon: 0.1 }", {{9, 5}}},
      {"batch_norm_far_from_zero", "batch_norm {}", {{2, 3, 5, 5}}, kNone, 9, 12},
      {"batch_norm_relu", "batch_norm {}", {{3, 8, 3, 5}}, kRelu, -1, 1, kManyKinks},
      {"batch_norm_relu6", "batch_norm {}", {{2, 17, 7, 7}}, kRelu6, -1, 1, kManyKinks},
      {"lrn_default_size", "lrn { alpha: 1 k: 2 }", {{3, 17, 3, 5}}, kNone, -2, 2},
      {"lrn_other_power", "lrn { size: 3 alpha: 2 beta: 0.5 }", {{1, 5, 5, 7}}, kNone, -2, 2},
      {"lrn_more_than_all", "lrn { size: 9 alpha: 2 }", {{2, 3}}, kNone, -2, 2},
  };
}

std::vector<LayerCase> Pools() {
  const auto max_pool = [](const char* name, const char* config, const BlobDesc& src) {
    return LayerCase{name, config, {src}, kNone, -1, 1, kPoolDistance};
  };
  return {
      max_pool("max_pool_2x2", "max_pool { kernel: 2 }", {3, 17, 6, 7}),
      max_pool("max_pool_overlapping", "max_pool { kernel: 3 stride: 2 padding: 1 }", {2, 5, 7, 9}),
      max_pool("max_pool_ceil", "max_pool { kernel: 3 stride: 2 rounding: CEIL }", {1, 3, 8, 6}),
      max_pool("max_pool_asymmetric",
               "max_pool { kernel: 4 kernel: 3 stride: 1 stride: 2"
               " padding: 2 padding: 0 padding: 1 padding: 1 }",
               {1, 16, 5, 7}),
      max_pool("max_pool_with_gaps", "max_pool { kernel: 2 stride: 3 }", {2, 3, 8, 8}),
      {"average_pool_2x2", "average_pool { kernel: 2 }", {{3, 17, 6, 7}}},
      {"average_pool_padding", "average_pool { kernel: 3 stride: 2 padding: 1 }", {{2, 5, 7, 9}}},
      {"average_pool_without_padding",
       "average_pool { kernel: 3 stride: 1 padding: 1 padding: 0 padding: 0 padding: 1"
       " count_padding: false }",
       {{1, 3, 5, 5}}},
      {"average_pool_ceil",
       "average_pool { kernel: 3 stride: 2 padding: 1 rounding: CEIL }",
       {{1, 16, 6, 8}}},
      {"global_average_pool_odd", "global_average_pool {}", {{3, 17, 5, 3}}},
      {"global_average_pool_pixel", "global_average_pool {}", {{1, 5, 1, 1}}},
      {"adaptive_average_pool_down", "adaptive_average_pool { output: 3 }", {{3, 17, 7, 5}}},
      {"adaptive_average_pool_up", "adaptive_average_pool { output: 6 }", {{1, 3, 4, 3}}},
  };
}

std::vector<LayerCase> Others() {
  return {
      {"concat_two", "concat {}", {{3, 16, 5, 3}, {3, 5, 5, 3}}},
      {"concat_three", "concat {}", {{1, 3, 3, 3}, {1, 17, 3, 3}, {1, 8, 3, 3}}},
      {"concat_vectors", "concat {}", {{2, 8}, {2, 3}}},
      {"flatten_image", "flatten {}", {{3, 17, 3, 5}}},
      {"flatten_vector", "flatten {}", {{1, 16}}},
      {"softmax_cross_entropy_two", "softmax_cross_entropy {}", {{5, 2}}, kNone, -3, 3},
      {"softmax_cross_entropy_smooth",
       "softmax_cross_entropy { label_smoothing: 0.1 }",
       {{3, 17}},
       kNone,
       -3,
       3},
  };
}

}  // namespace

std::string LayoutName(Layout layout) {
  constexpr std::array kNames = {"plain", "block8", "block16", "mixed"};
  return kNames[static_cast<size_t>(layout)];
}

std::vector<BlobDesc> InLayout(std::vector<BlobDesc> src, Layout layout) {
  constexpr std::array<int64_t, 3> kMixedBlocks = {16, 1, 8};
  for (size_t i = 0; i < src.size(); ++i) {
    switch (layout) {
      case Layout::kPlain:
        src[i].block = 1;
        break;
      case Layout::kBlock8:
        src[i].block = 8;
        break;
      case Layout::kBlock16:
        src[i].block = 16;
        break;
      case Layout::kMixed:
        src[i].block = kMixedBlocks[i % kMixedBlocks.size()];
        break;
    }
  }
  return src;
}

const std::vector<LayerCase>& LayerCases() {
  static const std::vector<LayerCase> cases = [] {
    std::vector<LayerCase> all;
    for (const auto& group : {Convolutions(), ConvolutionAlgorithms(), LinearLayers(),
                              ElementWise(), Normalisations(), Pools(), Others()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return cases;
}

}  // namespace ringtail
