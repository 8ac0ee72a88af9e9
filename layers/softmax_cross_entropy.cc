#include "layers/softmax_cross_entropy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "layers/shape_check.h"

namespace ringtail {

StatusOr<ShapeInfo> SoftmaxCrossEntropyLayer::InferShape(std::span<const BlobDesc> src) {
  RT_RETURN_IF_ERROR(CheckInputCount(src.size(), 1));
  RT_RETURN_IF_ERROR(fields().FractionBelowOne("label_smoothing", config_.label_smoothing()));
  if (src[0].plane() != 1) {
    return InvalidArgument(fmt::format(
        "its input is {}; logits are (N, classes): put flatten {{}} or linear {{}} before it",
        src[0].ShapeString()));
  }
  if (src[0].C < 2)
    return InvalidArgument("its input has one class; a classifier needs at least 2");
  return ShapeInfo{.dst = {.N = src[0].N, .C = 1}, .parameters = {}};
}

StatusOr<LayerPlan> SoftmaxCrossEntropyLayer::Setup(const SetupArgs& args) {
  RequireF32(args.src);
  src_ = args.src[0];
  return LayerPlan{.dst = {.N = src_.N, .C = 1},
                   .state_bytes = static_cast<size_t>(src_.N * src_.C) * sizeof(float)};
}

namespace {

// The classes of a row, each with a weight.
struct RowTarget {
  int32_t label = -1, other = -1;  // -1: none; of label: no sample
  float weight = 1, other_weight = 0;
};

RowTarget TargetOf(const StepContext& step, int64_t n) {
  if (step.soft.empty()) return {.label = step.labels[n]};
  const auto& [weight, other_weight] = step.soft.weights[n];
  return {.label = step.labels[n],
          .other = step.soft.other_labels[n],
          .weight = weight,
          .other_weight = step.soft.other_labels[n] < 0 ? 0 : other_weight};
}

}  // namespace

// With H = W = 1, element (n, c) of a blob lies at n * (channel blocks * block) + c
// in every layout.
void SoftmaxCrossEntropyLayer::Forward(const ForwardArgs& args) {
  const int64_t C = src_.C, row = src_.elements() / src_.N;
  const double s = config_.label_smoothing();
  float* p = reinterpret_cast<float*>(args.state);
  for (int64_t n = 0; n < src_.N; ++n) {
    const float* z = args.src[0] + n * row;
    double largest = z[0], sum = 0, total = 0;
    for (int64_t c = 1; c < C; ++c) largest = std::max<double>(largest, z[c]);
    for (int64_t c = 0; c < C; ++c) {
      sum += std::exp(z[c] - largest);
      total += z[c];
    }
    const double logsumexp = largest + std::log(sum);
    for (int64_t c = 0; c < C; ++c) p[n * C + c] = static_cast<float>(std::exp(z[c] - logsumexp));
    const RowTarget target = TargetOf(*args.step, n);
    const auto loss_of = [&](int32_t label) {
      return logsumexp - (1 - s) * z[label] - s / C * total;
    };
    double loss = target.label < 0 ? 0 : target.weight * loss_of(target.label);
    if (target.label >= 0 && target.other >= 0) loss += target.other_weight * loss_of(target.other);
    args.dst[n] = static_cast<float>(loss);
  }
}

void SoftmaxCrossEntropyLayer::Backward(const BackwardArgs& args) {
  if (args.diff_src[0] == nullptr) return;
  const int64_t C = src_.C, row = src_.elements() / src_.N;
  const float s = config_.label_smoothing();
  const float* p = reinterpret_cast<const float*>(args.state);
  std::fill_n(args.diff_src[0], src_.elements(), 0.0F);
  for (int64_t n = 0; n < src_.N; ++n) {
    const RowTarget target = TargetOf(*args.step, n);
    if (target.label < 0) continue;
    const float all = target.weight + target.other_weight;
    float* diff = args.diff_src[0] + n * row;
    for (int64_t c = 0; c < C; ++c) {
      diff[c] = all * (p[n * C + c] - s / static_cast<float>(C));
    }
    diff[target.label] -= (1 - s) * target.weight;
    if (target.other >= 0) diff[target.other] -= (1 - s) * target.other_weight;
  }
}

}  // namespace ringtail
