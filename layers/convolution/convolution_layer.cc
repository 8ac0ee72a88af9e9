#include "layers/convolution/convolution_layer.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/stop_signal.h"
#include "layers/activations/activation_gradient.h"
#include "layers/convolution/candidates.h"
#include "layers/convolution/choose_algorithm.h"
#include "layers/convolution/measure_algorithms.h"
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
  if (!config_.has_out_channels() && !config_.depthwise()) {
    return fields().Error("out_channels", "out_channels is missing");
  }
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
  return FuseOnce(activation, &problem_.activation);
}

StatusOr<LayerPlan> ConvolutionLayer::Setup(const SetupArgs& args) try {
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  problem_.src = args.src[0];
  problem_.training = args.training;
  problem_.src_is_affine = args.fusion.src_is_affine;
  problem_.diff_src_is_sum = args.fusion.diff_src_is_sum;
  problem_.dst_is_normalized =
      args.fusion.dst_is_normalized && problem_.activation == Activation::kNone;
  problem_.dst.type = args.dst_type;
  problem_.dst.block = OutputBlock(problem_);
  AlgorithmChoices forgotten(/*path=*/"", /*versions=*/"");
  ChooseAlgorithms(args, args.algorithms != nullptr ? args.algorithms : &forgotten);

  LayerPlan plan{.dst = problem_.dst,
                 .scratch_bytes = forward_->scratch_bytes(),
                 .backward_needs_src = true,
                 .backward_needs_dst = problem_.activation != Activation::kNone};
  FusionPlan& fusion = plan.fusion;
  fusion.forward_takes_affine = forward_->takes_affine();
  if (problem_.dst_is_normalized) fusion.dst_moments_pixels = forward_->moments_pixels();
  if (!backward_) return plan;
  plan.scratch_bytes = std::max(plan.scratch_bytes, backward_->scratch_bytes());
  fusion.backward_takes_affine = backward_->takes_affine();
  fusion.backward_takes_map = problem_.dst_is_normalized && backward_->takes_gradient_map();
  if (problem_.src_is_affine && args.needs_diff_src[0]) {
    fusion.diff_src_sums_pixels = backward_->gradient_sums_pixels();
  }
  fusion.backward_adds = problem_.diff_src_is_sum && backward_->adds_to_diff_src();
  return plan;
} catch (const dnnl::error& error) {
  return DnnlStatus(error);
} catch (const MeasuringStopped&) {
  return CheckNotStopped();
}

void ConvolutionLayer::ChooseAlgorithms(const SetupArgs& args, AlgorithmChoices* choices) {
  using Direction = ConvolutionDirection;
  const auto choose = [&](Direction direction) {
    return ChooseAlgorithm(problem_, direction, config_.algorithm(), args.measure, choices);
  };
  std::vector<Direction> chosen = {Direction::kForward};
  forward_ = choose(Direction::kForward);
  if (args.training && args.needs_diff_src[0]) {
    backward_ = choose(Direction::kBackward);
    chosen.insert(chosen.end(),
                  {Direction::kBackwardData, Direction::kBackwardWeights, Direction::kBackward});
  } else if (args.training) {
    backward_ = choose(Direction::kBackwardWeights);
    chosen.push_back(Direction::kBackwardWeights);
  }
  timings_.clear();
  if (config_.algorithm() != FASTEST) return;
  for (const Direction direction : chosen) {
    const AlgorithmChoice* choice = choices->Peek(ChoiceKey(problem_, direction));
    if (choice == nullptr) continue;
    timings_.push_back({DirectionName(direction), choice->algorithm, choice->seconds});
  }
}

void ConvolutionLayer::Forward(const ForwardArgs& args) {
  forward_->Run({.src = args.src[0],
                 .weight = weight_->value().data(),
                 .bias = bias_ != nullptr ? bias_->value().data() : nullptr,
                 .src_affine = args.fusion.src_affine,
                 .dst_moments = args.fusion.dst_moments,
                 .dst = args.dst,
                 .scratch = args.scratch});
}

void ConvolutionLayer::Backward(const BackwardArgs& args) {
  ApplyActivationGradient(problem_.activation, problem_.dst, args.dst, args.diff_dst);
  backward_->Run({.src = args.src[0],
                  .weight = weight_->value().data(),
                  .diff_dst = args.diff_dst,
                  .src_affine = args.fusion.src_affine,
                  .diff_dst_map = args.fusion.diff_dst_map,
                  .diff_src_sums = args.fusion.diff_src_sums,
                  .add_to_diff_src = args.fusion.add_to_diff_src,
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

}  // namespace ringtail
