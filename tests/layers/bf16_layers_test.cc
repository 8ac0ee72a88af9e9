// Every kind of layer on bf16 blobs, beside itself on f32 blobs, whose gradients
// gradient_check_test.cc checks. Inputs, gradients and weights are numbers that bf16 can hold, so
// that what differs is the rounding of what is written (2^-9 of each number at most, once or a few
// times) and the order of sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "tests/layers/checked_layer.h"

namespace ringtail {
namespace {

constexpr uint64_t kSeed = 22;
// Of a tensor, relative, in the Euclidean norm: one rounding is 1.7e-3; max pools with windows that
// overlap round sums several times.
constexpr double kTolerance = 6e-3;
// A sigmoid's gradient is dst (1 - dst): where dst is about 1 its rounding is a large part of that.
constexpr double kSigmoidTolerance = 1.2e-2;
// A rounded dst is on the other side of a kink, and a gradient is there or not.
constexpr float kNearKink = 0.05F;

using Case = std::tuple<const LayerCase*, Layout>;

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const LayerCase& layer_case : LayerCases()) {
    for (const Layout layout : kLayouts) {
      if (layout == Layout::kMixed && layer_case.src.size() == 1) continue;
      if (layout == Layout::kBlock8) continue;  // its loops are those of 16
      cases.emplace_back(&layer_case, layout);
    }
  }
  return cases;
}

float Rounded(float x) { return Widen(Narrow(x)); }

void Round(std::span<float> values) {
  for (float& value : values) value = Rounded(value);
}

// |a - b| / |b|, or |a - b| where b is about nothing.
double RelativeError(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-6));
}

LayerCase WithType(LayerCase layer_case, BlobType type) {
  for (BlobDesc& desc : layer_case.src) desc.type = type;
  return layer_case;
}

class Bf16LayersTest : public testing::TestWithParam<Case> {
 protected:
  static double Tolerance() {
    return std::get<0>(GetParam())->name.starts_with("sigmoid") ? kSigmoidTolerance : kTolerance;
  }
  std::unique_ptr<CheckedLayer> MakeLayer(BlobType type, bool training, bool in_place) const {
    const auto& [layer_case, layout] = GetParam();
    const bool loss = layer_case->name.starts_with("softmax_cross_entropy");
    auto layer = std::make_unique<CheckedLayer>(
        WithType(*layer_case, type), layout,
        LayerRunnerOptions{.training = training,
                           .in_place = in_place,
                           .seed = kSeed,
                           .dst_type = loss ? BlobType::kF32 : type});
    EXPECT_TRUE(layer->status().ok()) << layer->status().ToString();
    for (std::vector<float>& src : layer->src()) Round(src);
    for (size_t i = 0; i < layer->runner().num_parameters(); ++i) {
      Round(layer->runner().parameter(i).value());
    }
    return layer;
  }
};

TEST_P(Bf16LayersTest, ForwardIsThatOfF32Rounded) {
  for (const bool training : {true, false}) {
    const bool in_place = !training;
    const auto f32 = MakeLayer(BlobType::kF32, training, in_place);
    const auto bf16 = MakeLayer(BlobType::kBf16, training, in_place);
    const std::vector<float> expected = f32->Forward();
    EXPECT_LE(RelativeError(bf16->Forward(), expected), kTolerance);
    EXPECT_EQ(bf16->runner().problems(), "");
  }
}

TEST_P(Bf16LayersTest, GradientsAreThoseOfF32Rounded) {
  for (const bool in_place : {false, true}) {
    const auto f32 = MakeLayer(BlobType::kF32, /*training=*/true, in_place);
    const auto bf16 = MakeLayer(BlobType::kBf16, /*training=*/true, in_place);
    const std::vector<float> dst = f32->Forward();
    bf16->Forward();
    std::vector<float> diff = f32->projection();
    for (size_t i = 0; i < diff.size(); ++i) {
      const bool near = std::fabs(dst[i]) < kNearKink || std::fabs(dst[i] - 6) < kNearKink;
      diff[i] = f32->HasKinks() && near ? 0 : Rounded(diff[i]);
    }
    const auto expected = f32->runner().Backward(diff);
    const auto actual = bf16->runner().Backward(diff);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(RelativeError(actual[i], expected[i]), Tolerance()) << "src " << i;
    }
    for (size_t i = 0; i < f32->runner().num_parameters(); ++i) {
      const Parameter& parameter = f32->runner().parameter(i);
      if (parameter.is_buffer) continue;
      EXPECT_LE(RelativeError(bf16->runner().parameter(i).grad(), parameter.grad()), kTolerance)
          << parameter.spec.name;
    }
    EXPECT_EQ(bf16->runner().problems(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bf16LayersTest, testing::ValuesIn(AllCases()), [](const auto& info) {
  return std::get<0>(info.param)->name + "_" + LayoutName(std::get<1>(info.param));
});

}  // namespace
}  // namespace ringtail
