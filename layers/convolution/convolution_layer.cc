#include "layers/convolution/convolution_layer.h"

#include <fmt/core.h>

#include <algorithm>

#include "layers/activation_gradient.h"
#include "layers/convolution/choose_algorithm.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/dnnl_util.h"
#include "layers/shape_check.h"

namespace ringtail {

ConvolutionLayer::ConvolutionLayer(const ConvolutionConfig& config) : config_(config) {}

StatusOr<ShapeInfo> ConvolutionLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_ASSIGN_OR_RETURN(problem_.window,
                      ReadWindow(config_.kernel(), config_.stride(), config_.padding(),
                                 config_.dilation(), DefaultStride::kOne));
  const Window& w = problem_.window;
  const BlobDesc& in = src[0];
  const int64_t OC = config_.has_out_channels() ? config_.out_channels()
                     : config_.depthwise()      ? in.C
                                                : 0;
  if (OC < 1) return InvalidArgument(fmt::format("out_channels is {}; it must be at least 1", OC));
  const int64_t groups = config_.depthwise() ? in.C : config_.groups();
  if (groups < 1 || in.C % groups != 0 || OC % groups != 0) {
    return InvalidArgument(fmt::format(
        "groups is {}; it must divide the {} input and {} output channels", groups, in.C, OC));
  }
  problem_.groups = groups;
  problem_.bias = config_.bias();
  BlobDesc& dst = problem_.dst;
  dst = {in.N, OC, WindowsFloor(in.H, w.PT + w.PB, w.extent_h(), w.SH),
         WindowsFloor(in.W, w.PL + w.PR, w.extent_w(), w.SW)};
  if (dst.H < 1 || dst.W < 1) {
    return InvalidArgument(
        fmt::format("a kernel of {}x{} does not fit into {}x{} with this padding", w.extent_h(),
                    w.extent_w(), in.H, in.W));
  }
  RT_RETURN_IF_ERROR(CheckBlobSize(dst));
  const int64_t window = w.KH * w.KW;
  const int64_t fan_in = in.C / groups * window, fan_out = OC / groups * window;
  RT_RETURN_IF_ERROR(CheckBlobSize({OC, in.C / groups, w.KH, w.KW}).Annotate("weight"));
  ShapeInfo info{.dst = dst, .parameters = {}, .forward_flops = 0};
  info.parameters.push_back(
      {.spec = {"weight", {OC, in.C / groups, w.KH, w.KW}, ParameterKind::kConvolutionWeight},
       .init = config_.has_weight_init() ? &config_.weight_init() : nullptr,
       .fallback_init = ParameterRequest::Fallback::kHeNormal,
       .fan_in = fan_in,
       .fan_out = fan_out});
  if (config_.bias()) {
    info.parameters.push_back({.spec = {"bias", {OC}, ParameterKind::kVector},
                               .init = config_.has_bias_init() ? &config_.bias_init() : nullptr,
                               .fan_in = fan_in,
                               .fan_out = fan_out});
  }
  info.forward_flops = 2.0 * dst.N * OC * dst.plane() * fan_in;
  return info;
}

bool ConvolutionLayer::FuseActivation(Activation activation) {
  if (problem_.activation != Activation::kNone) return false;
  problem_.activation = activation;
  return true;
}

StatusOr<LayerPlan> ConvolutionLayer::Setup(const SetupArgs& args) try {
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  problem_.src = args.src[0];
  problem_.training = args.training;
  problem_.src_is_affine = args.src_is_affine;
  problem_.dst.block = OneDnnOutputBlock(problem_);

  const auto choose = [&](ConvolutionDirection direction) {
    return ChooseAlgorithm(problem_, direction, config_.algorithm(), args.measure,
                           &AlgorithmChoices::Shared());
  };
  forward_ = choose(ConvolutionDirection::kForward);
  size_t scratch_bytes = forward_->scratch_bytes();
  if (args.training) {
    // The two run one after the other: they share scratch.
    backward_weights_ = choose(ConvolutionDirection::kBackwardWeights);
    scratch_bytes = std::max(scratch_bytes, backward_weights_->scratch_bytes());
  }
  if (args.training && args.needs_diff_src[0]) {
    backward_data_ = choose(ConvolutionDirection::kBackwardData);
    scratch_bytes = std::max(scratch_bytes, backward_data_->scratch_bytes());
  }
  return LayerPlan{.dst = problem_.dst,
                   .scratch_bytes = scratch_bytes,
                   .backward_needs_src = true,
                   .backward_needs_dst = problem_.activation != Activation::kNone,
                   .forward_takes_affine = forward_->takes_affine(),
                   .backward_takes_affine = backward_weights_ && backward_weights_->takes_affine()};
} catch (const dnnl::error& error) {
  return DnnlStatus(error);
}

void ConvolutionLayer::Forward(const ForwardArgs& args) {
  forward_->Run({.src = args.src[0],
                 .weight = weight_->value().data(),
                 .bias = bias_ != nullptr ? bias_->value().data() : nullptr,
                 .src_affine = args.src_affine,
                 .dst = args.dst,
                 .scratch = args.scratch});
}

void ConvolutionLayer::Backward(const BackwardArgs& args) {
  ApplyActivationGradient(problem_.activation, args.dst, args.diff_dst, problem_.dst.elements());
  backward_weights_->Run({.src = args.src[0],
                          .diff_dst = args.diff_dst,
                          .src_affine = args.src_affine,
                          .diff_weight = weight_->grad().data(),
                          .diff_bias = bias_ != nullptr ? bias_->grad().data() : nullptr,
                          .scratch = args.scratch});
  if (args.diff_src[0] == nullptr) return;
  backward_data_->Run({.weight = weight_->value().data(),
                       .diff_dst = args.diff_dst,
                       .diff_src = args.diff_src[0],
                       .scratch = args.scratch});
}

// "forward / backward-weights / backward-data"
std::string ConvolutionLayer::Implementation() const {
  if (!forward_) return {};
  std::string names = forward_->name();
  if (backward_weights_) names += " / " + backward_weights_->name();
  if (backward_data_) names += " / " + backward_data_->name();
  return names;
}

std::vector<AlgorithmTimings> ConvolutionLayer::Timings() const {
  std::vector<AlgorithmTimings> timings;
  const auto add = [&](const auto& algorithm, ConvolutionDirection direction) {
    if (!algorithm || config_.algorithm() != FASTEST) return;
    const auto* choice = AlgorithmChoices::Shared().Find(ChoiceKey(problem_, direction));
    if (choice == nullptr) return;
    timings.push_back({DirectionName(direction), algorithm->name(), choice->seconds});
  };
  add(forward_, ConvolutionDirection::kForward);
  add(backward_data_, ConvolutionDirection::kBackwardData);
  add(backward_weights_, ConvolutionDirection::kBackwardWeights);
  return timings;
}

}  // namespace ringtail
