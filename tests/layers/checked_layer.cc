#include "tests/layers/checked_layer.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "core/random.h"
#include "layers/element_types/through_f32_layer.h"

namespace ringtail {
namespace {

constexpr uint64_t kLayerKey = 0x5EED;
// So that the sum of one, two or three inputs is no whole number.
constexpr float kOffKinks = 0.25F;

// Evenly spaced numbers in random order: no two are close,
// so that the largest of a window stays it.
std::vector<float> DistinctInputs(const BlobDesc& desc, uint64_t seed, float low, float high) {
  const auto count = static_cast<size_t>(PlainElements(desc));
  std::vector<size_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  Rng rng(RngKey(seed).With(kTestStream));
  for (size_t i = count; i > 1; --i) std::swap(ranks[i - 1], ranks[rng.Below(i)]);
  std::vector<float> inputs;
  for (const size_t rank : ranks) {
    const float value =
        low + (high - low) * (static_cast<float>(rank) + 0.5F) / static_cast<float>(count);
    inputs.push_back((std::round(value * 0x1p16F) + kOffKinks) * 0x1p-16F);
  }
  return inputs;
}

Doubles AsDoubles(std::span<const float> values) { return {values.begin(), values.end()}; }

}  // namespace

CheckedLayer::CheckedLayer(const LayerCase& layer_case, Layout layout,
                           const LayerRunnerOptions& options) {
  status_ = Create(layer_case, InLayout(layer_case.src, layout), options);
}

Status CheckedLayer::Create(const LayerCase& layer_case, const std::vector<BlobDesc>& src,
                            const LayerRunnerOptions& options) {
  RT_CHECK(google::protobuf::TextFormat::ParseFromString(layer_case.config, &problem_.config),
           layer_case.config);
  RT_ASSIGN_OR_RETURN(layer_, CreateLayer(problem_.config, kLayerKey));
  if (layer_case.fused != Activation::kNone && !layer_->FuseActivation(layer_case.fused)) {
    return FailedPrecondition("the layer does not fuse the activation");
  }
  std::vector<BlobType> types;
  for (const BlobDesc& desc : src) types.push_back(desc.type);
  if (!layer_->RunsOn(types, options.dst_type)) {
    layer_ = std::make_unique<ThroughF32Layer>(std::move(layer_));
  }
  runner_ = std::make_unique<LayerRunner>(layer_.get(), src, options);
  RT_RETURN_IF_ERROR(runner_->status());

  // Vectors start at 0 or 1, where a mistake may not show; these take batch norm beyond 6.
  Rng rng(RngKey(options.seed).With(kTestStream).With("vectors"));
  for (size_t i = 0; i < runner_->num_parameters(); ++i) {
    if (runner_->parameter(i).spec.kind != ParameterKind::kVector) continue;
    for (float& value : runner_->parameter(i).value()) value = rng.Uniform(0.5F, 3.0F);
  }
  for (size_t i = 0; i < src.size(); ++i) {
    src_.push_back(DistinctInputs(src[i], options.seed + i, layer_case.low, layer_case.high));
  }
  const BlobDesc& dst = runner_->plan().dst;
  projection_ = problem_.config.has_softmax_cross_entropy()
                    ? std::vector<float>(PlainElements(dst), 1.0F)
                    : RandomPlain(dst, options.seed + 100);
  for (int64_t n = 0; n < src[0].N; ++n) {  // the first row has no sample
    labels_.push_back(n == 0 ? -1 : static_cast<int32_t>(n % src[0].C));
  }
  runner_->step().step = 3;
  runner_->step().first_sample = 100;
  runner_->step().labels = labels_;
  problem_.fused = layer_case.fused;
  has_kinks_ = layer_case.kinks || layer_case.fused != Activation::kNone;
  problem_.key = kLayerKey;
  problem_.step = runner_->step();
  problem_.src = src;
  problem_.dst = dst;
  return OkStatus();
}

Doubles CheckedLayer::Naive(const std::vector<Doubles>& src,
                            const std::vector<Doubles>& parameters) const {
  return NaiveForward(problem_, src, parameters);
}

std::vector<Doubles> CheckedLayer::src_doubles() const {
  std::vector<Doubles> doubles;
  for (const auto& src : src_) doubles.push_back(AsDoubles(src));
  return doubles;
}

std::vector<Doubles> CheckedLayer::parameter_doubles() const {
  std::vector<Doubles> doubles;
  for (size_t i = 0; i < runner_->num_parameters(); ++i) {
    doubles.push_back(AsDoubles(runner_->parameter(i).value()));
  }
  return doubles;
}

}  // namespace ringtail
