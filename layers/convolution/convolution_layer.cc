#include "layers/convolution/convolution_layer.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/stop_signal.h"
#include "layers/activations/activation_gradient.h"
#include "layers/convolution/choose_algorithm.h"
#include "layers/onednn/dnnl_util.h"
#include "layers/shape_check.h"

namespace ringtail {

ConvolutionLayer::ConvolutionLayer(const ConvolutionConfig& config) : config_(config) {}

StatusOr<ShapeInfo> ConvolutionLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_ASSIGN_OR_RETURN(problem_.window,
                      ReadWindow(config_.kernel(), config_.stride(), config_.padding(),
                                 config_.dilation(), DefaultStride::kOne, fields()));
  const Window& w = problem_.window;
  const BlobDesc& in = src[0];
  const int64_t OC = config_.has_out_channels() ? config_.out_channels()
                     : config_.depthwise()      ? in.C
                                                : 0;
  RT_RETURN_IF_ERROR(fields().AtLeast("out_channels", OC, 1));
  const int64_t groups = config_.depthwise() ? in.C : config_.groups();
  if (groups < 1 || in.C % groups != 0 || OC % groups != 0) {
    return fields().Error(
        "groups", fmt::format("groups is {}; it must divide the {} input and {} output channels",
                              groups, in.C, OC));
  }
  problem_.groups = groups;
  problem_.bias = config_.bias();
  BlobDesc& dst = problem_.dst;
  dst = {in.N, OC, WindowsFloor(in.H, w.PT + w.PB, w.extent_h(), w.SH),
         WindowsFloor(in.W, w.PL + w.PR, w.extent_w(), w.SW)};
  if (dst.H < 1 || dst.W < 1) {
    return fields().Error("kernel",
                          fmt::format("a kernel of {}x{} does not fit into {}x{} with this padding",
                                      w.extent_h(), w.extent_w(), in.H, in.W));
  }
  RT_RETURN_IF_ERROR(CheckBlobSize(dst));
  const int64_t window = w.KH * w.KW;
  const int64_t fan_in = in.C / groups * window, fan_out = OC / groups * window;
  RT_RETURN_IF_ERROR(CheckBlobSize({OC, in.C / groups, w.KH, w.KW}).Annotate("weight"));
  ShapeInfo info{.dst = dst, .parameters = {}, .forward_flops = 0};
  info.parameters.push_back(
      {.spec = {"weight", {OC, in.C / groups, w.KH, w.KW}, ParameterKind::kConvolutionWeight},
       .init = config_.has_weight_init() ? &config_.weight_init() : nullptr,
       .init_field = "weight_init",
       .fallback_init = ParameterRequest::Fallback::kHeNormal,
       .fan_in = fan_in,
       .fan_out = fan_out});
  if (config_.bias()) {
    info.parameters.push_back({.spec = {"bias", {OC}, ParameterKind::kVector},
                               .init = config_.has_bias_init() ? &config_.bias_init() : nullptr,
                               .init_field = "bias_init",
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
  problem_.diff_src_is_begun = args.diff_src_is_begun;
  problem_.dst_is_normalized = args.dst_is_normalized && problem_.activation == Activation::kNone;
  problem_.dst.block = OutputBlock(problem_);

  const auto choose = [&](ConvolutionDirection direction) {
    return ChooseAlgorithm(problem_, direction, config_.algorithm(), args.measure,
                           &AlgorithmChoices::Shared());
  };
  forward_ = choose(ConvolutionDirection::kForward);
  if (args.training) {
    backward_ = choose(args.needs_diff_src[0] ? ConvolutionDirection::kBackward
                                              : ConvolutionDirection::kBackwardWeights);
  }
  return LayerPlan{
      .dst = problem_.dst,
      .scratch_bytes =
          std::max(forward_->scratch_bytes(), backward_ ? backward_->scratch_bytes() : 0),
      .backward_needs_src = true,
      .backward_needs_dst = problem_.activation != Activation::kNone,
      .forward_takes_affine = forward_->takes_affine(),
      .backward_takes_affine = backward_ && backward_->takes_affine(),
      .dst_moments_pixels = problem_.dst_is_normalized ? forward_->moments_pixels() : 0,
      .backward_takes_map =
          problem_.dst_is_normalized && backward_ && backward_->takes_gradient_map(),
      .diff_src_sums_pixels = args.src_is_affine && args.needs_diff_src[0] && backward_
                                  ? backward_->gradient_sums_pixels()
                                  : 0,
      .backward_adds = args.diff_src_is_begun && backward_ && backward_->adds_to_diff_src()};
} catch (const dnnl::error& error) {
  return DnnlStatus(error);
} catch (const MeasuringStopped&) {
  return CheckNotStopped();
}

void ConvolutionLayer::Forward(const ForwardArgs& args) {
  forward_->Run({.src = args.src[0],
                 .weight = weight_->value().data(),
                 .bias = bias_ != nullptr ? bias_->value().data() : nullptr,
                 .src_affine = args.src_affine,
                 .dst_moments = args.dst_moments,
                 .dst = args.dst,
                 .scratch = args.scratch});
}

void ConvolutionLayer::Backward(const BackwardArgs& args) {
  ApplyActivationGradient(problem_.activation, args.dst, args.diff_dst, problem_.dst.elements());
  backward_->Run({.src = args.src[0],
                  .weight = weight_->value().data(),
                  .diff_dst = args.diff_dst,
                  .src_affine = args.src_affine,
                  .diff_dst_map = args.diff_dst_map,
                  .diff_src_sums = args.diff_src_sums,
                  .add_to_diff_src = args.add_to_diff_src,
                  .diff_src = args.diff_src[0],
                  .diff_weight = weight_->grad().data(),
                  .diff_bias = bias_ != nullptr ? bias_->grad().data() : nullptr,
                  .scratch = args.scratch});
}

// "forward / backward", or "forward / backward-weights / backward-data"
std::string ConvolutionLayer::Implementation() const {
  if (!forward_) return {};
  return forward_->name() + (backward_ ? " / " + backward_->description() : "");
}

std::vector<AlgorithmTimings> ConvolutionLayer::Timings() const {
  std::vector<AlgorithmTimings> timings;
  if (!forward_ || config_.algorithm() != FASTEST) return timings;
  const auto add = [&](ConvolutionDirection direction) {
    const auto* choice = AlgorithmChoices::Shared().Find(ChoiceKey(problem_, direction));
    if (choice == nullptr) return;
    timings.push_back({DirectionName(direction), choice->algorithm, choice->seconds});
  };
  add(ConvolutionDirection::kForward);
  if (!backward_) return timings;
  add(ConvolutionDirection::kBackwardData);
  add(ConvolutionDirection::kBackwardWeights);
  add(ConvolutionDirection::kBackward);
  return timings;
}

}  // namespace ringtail
