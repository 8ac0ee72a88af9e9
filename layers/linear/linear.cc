#include "layers/linear/linear.h"

#include <fmt/core.h>

#include <algorithm>

#include "layers/activations/activation_gradient.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/linear/plain_rows.h"
#include "layers/scratch_layout.h"
#include "layers/shape_check.h"

namespace ringtail {

namespace {

Status CheckWeightSize(int64_t M, int64_t K, const FieldCheck& fields) {
  if (CheckBlobSize({M, K}).ok()) return OkStatus();
  constexpr double kGib = 1 << 30;
  return fields.Error(
      "out_features",
      fmt::format("out_features is {}, for {} inputs: {:.4g} GiB of weights", M, K,
                  static_cast<double>(M) * static_cast<double>(K) * sizeof(float) / kGib));
}

}  // namespace

LinearLayer::LinearLayer(const LinearConfig& config) : config_(config) {}

StatusOr<ShapeInfo> LinearLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  const int64_t K = src[0].C * src[0].plane(), M = config_.out_features();
  if (!config_.has_out_features()) {
    return fields().Error("out_features", "out_features is missing");
  }
  RT_RETURN_IF_ERROR(fields().AtLeast("out_features", M, 1));
  dst_ = {src[0].N, M};
  RT_RETURN_IF_ERROR(CheckBlobSize(dst_));
  RT_RETURN_IF_ERROR(CheckWeightSize(M, K, fields()));
  ShapeInfo info{.dst = dst_, .parameters = {}, .forward_flops = 2.0 * dst_.N * K * M};
  info.parameters.push_back({.spec = {"weight", {M, K}, ParameterKind::kLinearWeight},
                             .init = config_.has_weight_init() ? &config_.weight_init() : nullptr,
                             .init_field = "weight_init",
                             .fallback_init = ParameterRequest::Fallback::kHeNormal,
                             .fan_in = K,
                             .fan_out = M});
  if (config_.bias()) {
    info.parameters.push_back({.spec = {"bias", {M}, ParameterKind::kVector},
                               .init = config_.has_bias_init() ? &config_.bias_init() : nullptr,
                               .init_field = "bias_init",
                               .fan_in = K,
                               .fan_out = M});
  }
  return info;
}

bool LinearLayer::FuseActivation(Activation activation) {
  return FuseOnce(activation, &activation_);
}

bool LinearLayer::RunsOn(std::span<const BlobType> src, BlobType dst) const {
  if (dst == BlobType::kBf16 && FastBf16Unit() == Bf16Unit::kNone) return false;
  return AllAre(src, dst);
}

StatusOr<LayerPlan> LinearLayer::Setup(const SetupArgs& args) {
  if (args.dst_type == BlobType::kF32) RequireF32(args.src);
  RT_CHECK(args.src[0].type == args.dst_type, "src and dst have one type (RunsOn)");
  rows_ = PlainRows(args.src[0]);
  dst_.type = args.dst_type;
  products_ = LinearProducts::Create({.N = rows_.N(), .K = rows_.K(), .M = dst_.C}, dst_.type,
                                     OperandType(args));
  weight_ = args.parameters[0];
  bias_ = config_.bias() ? args.parameters[1] : nullptr;
  ScratchLayout layout;
  plain_ = layout.AddBytes(rows_.copied_bytes());
  multiply_ = layout.AddBytes(products_->scratch_bytes());
  return LayerPlan{.dst = dst_,
                   .scratch_bytes = layout.bytes(),
                   .backward_needs_src = true,
                   .backward_needs_dst = activation_ != Activation::kNone};
}

void LinearLayer::Forward(const ForwardArgs& args) {
  const float* src = rows_.Read(args.src[0], ArrayAt<float>(args.scratch, plain_));
  products_->Forward(src,
                     {.weight = weight_->value().data(),
                      .bias = bias_ != nullptr ? bias_->value().data() : nullptr},
                     activation_, args.dst, args.scratch + multiply_);
}

void LinearLayer::Backward(const BackwardArgs& args) {
  float* const plain = ArrayAt<float>(args.scratch, plain_);
  std::byte* const scratch = args.scratch + multiply_;
  ApplyActivationGradient(activation_, dst_, args.dst, args.diff_dst);
  products_->BackwardWeights(rows_.Read(args.src[0], plain), args.diff_dst, weight_->grad().data(),
                             scratch);
  if (bias_ != nullptr) products_->BackwardBias(args.diff_dst, bias_->grad().data());
  if (args.diff_src[0] == nullptr) return;
  float* const rows = rows_.is_plain() ? args.diff_src[0] : plain;
  products_->BackwardData(args.diff_dst, weight_->value().data(), rows, scratch);
  rows_.Write(rows, args.diff_src[0]);
}

std::string LinearLayer::Implementation() const {
  return products_ != nullptr ? products_->name() : std::string();
}

}  // namespace ringtail
