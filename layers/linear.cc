#include "layers/linear.h"

#include <fmt/core.h>

#include "layers/activation_gradient.h"
#include "layers/dnnl_util.h"
#include "layers/shape_check.h"

namespace ringtail {
namespace {

using Memory = dnnl::memory;
using Port = DnnlPort;
constexpr auto kF32 = Memory::data_type::f32;

Memory Unbound(const Memory::desc& desc) { return {desc, DnnlEngine(), DNNL_MEMORY_NONE}; }

}  // namespace

struct LinearLayer::Primitives {
  dnnl::inner_product_forward forward;
  dnnl::inner_product_backward_weights backward_weights;
  dnnl::inner_product_backward_data backward_data;
  Port forward_src, weights_src, data_diff_src;  // the only blobs that may come in blocks
  Memory dst, weights, bias, diff_dst, diff_weights, diff_bias;
  Memory forward_scratchpad, weights_scratchpad, data_scratchpad;
  size_t scratchpad_offset = 0;
  std::string implementation;
};

LinearLayer::LinearLayer(const LinearConfig& config) : config_(config) {}
LinearLayer::~LinearLayer() = default;

StatusOr<ShapeInfo> LinearLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  const int64_t K = src[0].C * src[0].plane(), M = config_.out_features();
  if (M < 1) return InvalidArgument(fmt::format("out_features is {}; it must be at least 1", M));
  dst_ = {src[0].N, M};
  RT_RETURN_IF_ERROR(CheckBlobSize(dst_));
  RT_RETURN_IF_ERROR(CheckBlobSize({M, K}).Annotate("weight"));
  ShapeInfo info{.dst = dst_, .parameters = {}, .forward_flops = 2.0 * dst_.N * K * M};
  info.parameters.push_back({.spec = {"weight", {M, K}, ParameterKind::kLinearWeight},
                             .init = config_.has_weight_init() ? &config_.weight_init() : nullptr,
                             .fallback_init = ParameterRequest::Fallback::kHeNormal,
                             .fan_in = K,
                             .fan_out = M});
  if (config_.bias()) {
    info.parameters.push_back({.spec = {"bias", {M}, ParameterKind::kVector},
                               .init = config_.has_bias_init() ? &config_.bias_init() : nullptr,
                               .fan_in = K,
                               .fan_out = M});
  }
  return info;
}

bool LinearLayer::FuseActivation(Activation activation) {
  if (activation_ != Activation::kNone) return false;
  activation_ = activation;
  return true;
}

StatusOr<LayerPlan> LinearLayer::Setup(const SetupArgs& args) try {
  src_ = args.src[0];
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  primitives_ = std::make_unique<Primitives>();
  Primitives& q = *primitives_;

  const Memory::dims src_dims = {src_.N, src_.C, src_.H, src_.W};
  const Memory::desc src(src_dims, kF32, Memory::format_tag::nchw);
  const Memory::desc weights({dst_.C, src_.C, src_.H, src_.W}, kF32, Memory::format_tag::oihw);
  const Memory::desc bias =
      bias_ ? Memory::desc({dst_.C}, kF32, Memory::format_tag::x) : Memory::desc();
  const Memory::desc dst({dst_.N, dst_.C}, kF32, Memory::format_tag::nc);

  const auto kind =
      args.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const dnnl::inner_product_forward::primitive_desc forward(
      {kind, src, weights, bias, dst}, UserScratchpadWith(activation_), DnnlEngine());
  q.forward = dnnl::inner_product_forward(forward);
  q.implementation = forward.impl_info_str();
  q.weights = Unbound(weights);
  q.dst = Unbound(dst);
  q.forward_scratchpad = Unbound(forward.scratchpad_desc());
  if (bias_) q.bias = Unbound(bias);
  size_t scratchpad_bytes = forward.scratchpad_desc().get_size();

  ScratchLayout scratch;
  q.forward_src = Port(Port::Direction::kIn, ToDnnl(src_), src, &scratch);
  if (args.training) {
    const dnnl::inner_product_backward_weights::primitive_desc backward_weights(
        {src, weights, bias, dst}, UserScratchpad(), DnnlEngine(), forward);
    q.backward_weights = dnnl::inner_product_backward_weights(backward_weights);
    q.weights_src = Port(Port::Direction::kIn, ToDnnl(src_), src, &scratch);
    q.weights_scratchpad = Unbound(backward_weights.scratchpad_desc());
    q.diff_dst = Unbound(dst);
    q.diff_weights = Unbound(weights);
    if (bias_) q.diff_bias = Unbound(bias);
    const dnnl::inner_product_backward_data::primitive_desc backward_data(
        {src, weights, dst}, UserScratchpad(), DnnlEngine(), forward);
    q.backward_data = dnnl::inner_product_backward_data(backward_data);
    q.data_diff_src = Port(Port::Direction::kOut, ToDnnl(src_), src, &scratch);
    q.data_scratchpad = Unbound(backward_data.scratchpad_desc());
    scratchpad_bytes = std::max({scratchpad_bytes, backward_weights.scratchpad_desc().get_size(),
                                 backward_data.scratchpad_desc().get_size()});
  }
  q.scratchpad_offset = scratch.Add(scratchpad_bytes);
  return LayerPlan{.dst = dst_,
                   .scratch_bytes = scratch.bytes(),
                   .backward_needs_src = true,
                   .backward_needs_dst = activation_ != Activation::kNone};
} catch (const dnnl::error& error) {
  return DnnlStatus(error);
}

void LinearLayer::Forward(const ForwardArgs& args) {
  Primitives& q = *primitives_;
  SetHandle(&q.weights, weight_->value().data());
  SetHandle(&q.dst, args.dst);
  SetHandle(&q.forward_scratchpad, args.scratch + q.scratchpad_offset);
  DnnlArgs arguments = {{DNNL_ARG_SRC, q.forward_src.Begin(args.src[0], args.scratch)},
                        {DNNL_ARG_WEIGHTS, q.weights},
                        {DNNL_ARG_DST, q.dst},
                        {DNNL_ARG_SCRATCHPAD, q.forward_scratchpad}};
  if (bias_) {
    SetHandle(&q.bias, bias_->value().data());
    arguments.emplace(DNNL_ARG_BIAS, q.bias);
  }
  q.forward.execute(DnnlStream(), arguments);
}

void LinearLayer::Backward(const BackwardArgs& args) {
  Primitives& q = *primitives_;
  ApplyActivationGradient(activation_, args.dst, args.diff_dst, dst_.elements());
  SetHandle(&q.diff_dst, args.diff_dst);
  SetHandle(&q.diff_weights, weight_->grad().data());
  SetHandle(&q.weights_scratchpad, args.scratch + q.scratchpad_offset);
  DnnlArgs arguments = {{DNNL_ARG_SRC, q.weights_src.Begin(args.src[0], args.scratch)},
                        {DNNL_ARG_DIFF_DST, q.diff_dst},
                        {DNNL_ARG_DIFF_WEIGHTS, q.diff_weights},
                        {DNNL_ARG_SCRATCHPAD, q.weights_scratchpad}};
  if (bias_) {
    SetHandle(&q.diff_bias, bias_->grad().data());
    arguments.emplace(DNNL_ARG_DIFF_BIAS, q.diff_bias);
  }
  q.backward_weights.execute(DnnlStream(), arguments);

  if (args.diff_src[0] == nullptr) return;
  SetHandle(&q.weights, weight_->value().data());
  SetHandle(&q.data_scratchpad, args.scratch + q.scratchpad_offset);
  q.backward_data.execute(
      DnnlStream(), {{DNNL_ARG_DIFF_DST, q.diff_dst},
                     {DNNL_ARG_WEIGHTS, q.weights},
                     {DNNL_ARG_DIFF_SRC, q.data_diff_src.Begin(args.diff_src[0], args.scratch)},
                     {DNNL_ARG_SCRATCHPAD, q.data_scratchpad}});
  q.data_diff_src.End();
}

std::string LinearLayer::Implementation() const {
  return primitives_ ? primitives_->implementation : std::string();
}

}  // namespace ringtail
