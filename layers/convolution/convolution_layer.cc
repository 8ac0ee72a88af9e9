#include "layers/convolution/convolution_layer.h"

#include <fmt/core.h>

#include "layers/activation_gradient.h"
#include "layers/dnnl_util.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

using Memory = dnnl::memory;
using Port = DnnlPort;
constexpr auto kF32 = Memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Everything that the three primitive descriptors of a convolution need.
struct Problem {
  BlobDesc src, dst;
  Memory::dims weight_dims, bias_dims, stride, dilation, padding_begin, padding_end;
  Activation activation;

  Memory::desc Weights(bool plain) const {
    using Tag = Memory::format_tag;
    const Tag tag = weight_dims.size() == 5 ? Tag::goihw : Tag::oihw;
    return {weight_dims, kF32, plain ? tag : Tag::any};
  }
  Memory::desc Bias() const {
    return bias_dims.empty() ? Memory::desc()
                             : Memory::desc(bias_dims, kF32, Memory::format_tag::x);
  }
};

Problem MakeProblem(const Window& w, int64_t groups, const BlobDesc& src, const BlobDesc& dst,
                    bool bias, Activation activation) {
  Problem p{.src = src,
            .dst = dst,
            .weight_dims = {dst.C / groups, src.C / groups, w.KH, w.KW},
            .bias_dims = {},
            .stride = {w.SH, w.SW},
            .dilation = {w.DH - 1, w.DW - 1},
            .padding_begin = {w.PT, w.PL},
            .padding_end = {w.PB, w.PR},
            .activation = activation};
  if (groups > 1) p.weight_dims.insert(p.weight_dims.begin(), groups);
  if (bias) p.bias_dims = {dst.C};
  return p;
}

dnnl::convolution_forward::primitive_desc ForwardDesc(const Problem& p, const Memory::desc& src,
                                                      const Memory::desc& dst, bool training) {
  const auto kind =
      training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return {{kind, kDirect, src, p.Weights(false), p.Bias(), dst, p.stride, p.dilation,
           p.padding_begin, p.padding_end},
          UserScratchpadWith(p.activation),
          DnnlEngine()};
}

dnnl::convolution_backward_data::primitive_desc BackwardDataDesc(
    const Problem& p, const Memory::desc& diff_src, const Memory::desc& diff_dst,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {{kDirect, diff_src, p.Weights(false), diff_dst, p.stride, p.dilation, p.padding_begin,
           p.padding_end},
          UserScratchpad(),
          DnnlEngine(),
          forward};
}

dnnl::convolution_backward_weights::primitive_desc BackwardWeightsDesc(
    const Problem& p, const Memory::desc& src, const Memory::desc& diff_dst,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {{kDirect, src, p.Weights(false), p.Bias(), diff_dst, p.stride, p.dilation,
           p.padding_begin, p.padding_end},
          UserScratchpad(),
          DnnlEngine(),
          forward};
}

// The primitive for the layouts that the net has, if oneDNN is fast there; otherwise the one for
// the layouts that oneDNN prefers, and the ports reorder.
template <typename Create>
auto CreateFast(const Create& create, const Memory::desc& given_a, const Memory::desc& given_b,
                const Memory::desc& any_a, const Memory::desc& any_b) {
  try {
    auto given = create(given_a, given_b);
    if (IsFastImplementation(given.impl_info_str())) return given;
    auto preferred = create(any_a, any_b);
    return IsFastImplementation(preferred.impl_info_str()) ? preferred : given;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return create(any_a, any_b);
  }
}

}  // namespace

struct ConvolutionLayer::Primitives {
  dnnl::convolution_forward forward;
  Port forward_src, forward_weights, forward_dst;
  Memory forward_scratchpad;
  size_t forward_scratchpad_offset = 0;

  dnnl::convolution_backward_weights backward_weights;
  Port weights_src, weights_diff_dst, weights_diff_weights;
  Memory weights_scratchpad;
  size_t weights_scratchpad_offset = 0;

  dnnl::convolution_backward_data backward_data;  // unset where no gradient is wanted
  Port data_diff_dst, data_weights, data_diff_src;
  Memory data_scratchpad;
  size_t data_scratchpad_offset = 0;

  Memory bias, diff_bias;
  std::string implementation;
};

ConvolutionLayer::ConvolutionLayer(const ConvolutionConfig& config) : config_(config) {}
ConvolutionLayer::~ConvolutionLayer() = default;

StatusOr<ShapeInfo> ConvolutionLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_ASSIGN_OR_RETURN(window_, ReadWindow(config_.kernel(), config_.stride(), config_.padding(),
                                          config_.dilation(), DefaultStride::kOne));
  const BlobDesc& in = src[0];
  const int64_t OC = config_.has_out_channels() ? config_.out_channels()
                     : config_.depthwise()      ? in.C
                                                : 0;
  if (OC < 1) return InvalidArgument(fmt::format("out_channels is {}; it must be at least 1", OC));
  groups_ = config_.depthwise() ? in.C : config_.groups();
  if (groups_ < 1 || in.C % groups_ != 0 || OC % groups_ != 0) {
    return InvalidArgument(fmt::format(
        "groups is {}; it must divide the {} input and {} output channels", groups_, in.C, OC));
  }
  dst_ = {in.N, OC, WindowsFloor(in.H, window_.PT + window_.PB, window_.extent_h(), window_.SH),
          WindowsFloor(in.W, window_.PL + window_.PR, window_.extent_w(), window_.SW)};
  if (dst_.H < 1 || dst_.W < 1) {
    return InvalidArgument(
        fmt::format("a kernel of {}x{} does not fit into {}x{} with this padding",
                    window_.extent_h(), window_.extent_w(), in.H, in.W));
  }
  RT_RETURN_IF_ERROR(CheckBlobSize(dst_));
  const int64_t window = window_.KH * window_.KW;
  const int64_t fan_in = in.C / groups_ * window, fan_out = OC / groups_ * window;
  RT_RETURN_IF_ERROR(
      CheckBlobSize({OC, in.C / groups_, window_.KH, window_.KW}).Annotate("weight"));
  ShapeInfo info{.dst = dst_, .parameters = {}, .forward_flops = 0};
  info.parameters.push_back({.spec = {"weight",
                                      {OC, in.C / groups_, window_.KH, window_.KW},
                                      ParameterKind::kConvolutionWeight},
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
  info.forward_flops = 2.0 * dst_.N * OC * dst_.plane() * fan_in;
  return info;
}

bool ConvolutionLayer::FuseActivation(Activation activation) {
  if (activation_ != Activation::kNone) return false;
  activation_ = activation;
  return true;
}

StatusOr<LayerPlan> ConvolutionLayer::Setup(const SetupArgs& args) try {
  const Problem p = MakeProblem(window_, groups_, args.src[0], dst_, config_.bias(), activation_);
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  primitives_ = std::make_unique<Primitives>();
  Primitives& q = *primitives_;
  const Memory::desc src = ToDnnl(p.src), any_src = AnyLayout(p.src), any_dst = AnyLayout(p.dst);

  const auto forward =
      CreateFast([&](const Memory::desc& s,
                     const Memory::desc& d) { return ForwardDesc(p, s, d, args.training); },
                 src, any_dst, any_src, any_dst);
  const int64_t block = BlockOf(forward.dst_desc());
  dst_.block = block != 0 ? block : 1;
  const Memory::desc dst = ToDnnl(dst_);

  ScratchLayout scratch;
  q.forward = dnnl::convolution_forward(forward);
  q.forward_src = Port(Port::Direction::kIn, src, forward.src_desc(), &scratch);
  q.forward_weights = Port(Port::Direction::kIn, p.Weights(true), forward.weights_desc(), &scratch);
  q.forward_dst = Port(Port::Direction::kOut, dst, forward.dst_desc(), &scratch);
  q.forward_scratchpad = Memory(forward.scratchpad_desc(), DnnlEngine(), DNNL_MEMORY_NONE);
  q.forward_scratchpad_offset = scratch.Add(forward.scratchpad_desc().get_size());
  q.implementation = forward.impl_info_str();
  if (bias_ != nullptr) q.bias = q.diff_bias = Memory(p.Bias(), DnnlEngine(), DNNL_MEMORY_NONE);
  size_t scratch_bytes = scratch.bytes();

  if (args.training) {
    const auto hint = ForwardDesc(p, any_src, any_dst, true);
    // The two backward primitives run one after the other: they share scratch.
    ScratchLayout weights;
    const auto backward_weights =
        CreateFast([&](const Memory::desc& s,
                       const Memory::desc& d) { return BackwardWeightsDesc(p, s, d, hint); },
                   src, dst, any_src, any_dst);
    q.backward_weights = dnnl::convolution_backward_weights(backward_weights);
    q.weights_src = Port(Port::Direction::kIn, src, backward_weights.src_desc(), &weights);
    q.weights_diff_dst =
        Port(Port::Direction::kIn, dst, backward_weights.diff_dst_desc(), &weights);
    q.weights_diff_weights = Port(Port::Direction::kOut, p.Weights(true),
                                  backward_weights.diff_weights_desc(), &weights);
    q.weights_scratchpad =
        Memory(backward_weights.scratchpad_desc(), DnnlEngine(), DNNL_MEMORY_NONE);
    q.weights_scratchpad_offset = weights.Add(backward_weights.scratchpad_desc().get_size());
    if (bias_ != nullptr) q.diff_bias = Memory(p.Bias(), DnnlEngine(), DNNL_MEMORY_NONE);
    q.implementation += " / " + std::string(backward_weights.impl_info_str());

    ScratchLayout data;
    if (args.needs_diff_src[0]) {
      const auto backward_data =
          CreateFast([&](const Memory::desc& s,
                         const Memory::desc& d) { return BackwardDataDesc(p, s, d, hint); },
                     src, dst, any_src, any_dst);
      q.backward_data = dnnl::convolution_backward_data(backward_data);
      q.data_diff_dst = Port(Port::Direction::kIn, dst, backward_data.diff_dst_desc(), &data);
      q.data_weights =
          Port(Port::Direction::kIn, p.Weights(true), backward_data.weights_desc(), &data);
      q.data_diff_src = Port(Port::Direction::kOut, src, backward_data.diff_src_desc(), &data);
      q.data_scratchpad = Memory(backward_data.scratchpad_desc(), DnnlEngine(), DNNL_MEMORY_NONE);
      q.data_scratchpad_offset = data.Add(backward_data.scratchpad_desc().get_size());
      q.implementation += " / " + std::string(backward_data.impl_info_str());
    }
    scratch_bytes = std::max({scratch_bytes, weights.bytes(), data.bytes()});
  }
  return LayerPlan{.dst = dst_,
                   .scratch_bytes = scratch_bytes,
                   .backward_needs_src = true,
                   .backward_needs_dst = activation_ != Activation::kNone};
} catch (const dnnl::error& error) {
  return DnnlStatus(error);
}

void ConvolutionLayer::Forward(const ForwardArgs& args) {
  Primitives& q = *primitives_;
  SetHandle(&q.forward_scratchpad, args.scratch + q.forward_scratchpad_offset);
  DnnlArgs arguments = {
      {DNNL_ARG_SRC, q.forward_src.Begin(args.src[0], args.scratch)},
      {DNNL_ARG_WEIGHTS, q.forward_weights.Begin(weight_->value().data(), args.scratch)},
      {DNNL_ARG_DST, q.forward_dst.Begin(args.dst, args.scratch)},
      {DNNL_ARG_SCRATCHPAD, q.forward_scratchpad}};
  if (bias_ != nullptr) {
    SetHandle(&q.bias, bias_->value().data());
    arguments.emplace(DNNL_ARG_BIAS, q.bias);
  }
  q.forward.execute(DnnlStream(), arguments);
  q.forward_dst.End();
}

void ConvolutionLayer::Backward(const BackwardArgs& args) {
  Primitives& q = *primitives_;
  ApplyActivationGradient(activation_, args.dst, args.diff_dst, dst_.elements());

  SetHandle(&q.weights_scratchpad, args.scratch + q.weights_scratchpad_offset);
  DnnlArgs arguments = {
      {DNNL_ARG_SRC, q.weights_src.Begin(args.src[0], args.scratch)},
      {DNNL_ARG_DIFF_DST, q.weights_diff_dst.Begin(args.diff_dst, args.scratch)},
      {DNNL_ARG_DIFF_WEIGHTS, q.weights_diff_weights.Begin(weight_->grad().data(), args.scratch)},
      {DNNL_ARG_SCRATCHPAD, q.weights_scratchpad}};
  if (bias_ != nullptr) {
    SetHandle(&q.diff_bias, bias_->grad().data());
    arguments.emplace(DNNL_ARG_DIFF_BIAS, q.diff_bias);
  }
  q.backward_weights.execute(DnnlStream(), arguments);
  q.weights_diff_weights.End();

  if (args.diff_src[0] == nullptr) return;
  SetHandle(&q.data_scratchpad, args.scratch + q.data_scratchpad_offset);
  q.backward_data.execute(
      DnnlStream(),
      {{DNNL_ARG_DIFF_DST, q.data_diff_dst.Begin(args.diff_dst, args.scratch)},
       {DNNL_ARG_WEIGHTS, q.data_weights.Begin(weight_->value().data(), args.scratch)},
       {DNNL_ARG_DIFF_SRC, q.data_diff_src.Begin(args.diff_src[0], args.scratch)},
       {DNNL_ARG_SCRATCHPAD, q.data_scratchpad}});
  q.data_diff_src.End();
}

std::string ConvolutionLayer::Implementation() const {
  return primitives_ ? primitives_->implementation : std::string();
}

}  // namespace ringtail
