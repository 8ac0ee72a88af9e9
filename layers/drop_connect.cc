#include "layers/drop_connect.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel_for.h"
#include "core/round.h"
#include "layers/dropout.h"
#include "layers/kernels/dropout.h"
#include "layers/net.pb.h"

namespace ringtail {
namespace {

constexpr int64_t kGroupsPerTask = 4096;  // about 10 us

// A field of the linear layer inside, as a path from this layer's config on.
std::string LinearField(const std::string& field) {
  return field.empty() ? "linear" : "linear." + field;
}

void Scale(float factor, std::span<const float> src, std::span<float> dst) {
  const auto count = static_cast<int64_t>(src.size());
  ParallelFor(count, kGroupsPerTask * kDropoutGroup, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dst[i] = factor * src[i];
  });
}

}  // namespace

DropConnectLayer::DropConnectLayer(const DropConnectConfig& config, uint64_t key)
    : rate_(config.rate()), key_(key), linear_(config.linear()) {}

StatusOr<ShapeInfo> DropConnectLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(fields().FractionBelowOne("rate", rate_));
  auto info = linear_.InferShape(src);
  if (!info.ok())
    return fields().Error(LinearField(linear_.failed_field()), info.status().message());
  for (ParameterRequest& request : info->parameters) {
    request.init_field = LinearField(request.init_field);
  }
  return info;
}

bool DropConnectLayer::FuseActivation(Activation activation) {
  return linear_.FuseActivation(activation);
}

StatusOr<LayerPlan> DropConnectLayer::Setup(const SetupArgs& args) {
  weight_ = args.parameters[0];
  if (!args.allocate) return linear_.Setup(args);
  RT_ASSIGN_OR_RETURN(masked_, ParameterArena::Create({weight_->spec}, {}));
  std::vector<const Parameter*> parameters(args.parameters.begin(), args.parameters.end());
  parameters[0] = masked_->parameters().data();
  SetupArgs linear_args = args;
  linear_args.parameters = parameters;
  return linear_.Setup(linear_args);
}

void DropConnectLayer::Forward(const ForwardArgs& args) {
  const std::span<float> masked = masked_->parameters()[0].value();
  if (args.step->training) {
    ApplyMask(*args.step, weight_->value(), masked);
  } else {
    Scale(1 - rate_, weight_->value(), masked);
  }
  linear_.Forward(args);
}

void DropConnectLayer::Backward(const BackwardArgs& args) {
  linear_.Backward(args);
  const std::span<const float> diff_masked = masked_->parameters()[0].grad();
  if (args.step->training) return ApplyMask(*args.step, diff_masked, weight_->grad());
  Scale(1 - rate_, diff_masked, weight_->grad());
}

std::string DropConnectLayer::Implementation() const { return linear_.Implementation(); }

void DropConnectLayer::ApplyMask(const StepContext& step, std::span<const float> src,
                                 std::span<float> dst) const {
  constexpr int64_t kAllGroups = int64_t{1} << 32;  // the weights are one long vector
  const DropoutDraw draw = {DropoutKey(step, key_).bits(), DropThreshold(rate_), 1.0F};
  const auto count = static_cast<int64_t>(src.size());
  const int64_t groups = CeilDivide(count, kDropoutGroup);
  ParallelFor(groups, kGroupsPerTask, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kDropoutGroup, last = std::min(end * kDropoutGroup, count);
    RT_KERNEL(DropoutInterleaved, draw, static_cast<uint32_t>(begin), kAllGroups, last - first,
              src.data() + first, dst.data() + first);
  });
}

}  // namespace ringtail
