#include "layers/activations/activation_gradient.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

TEST(ActivationGradientTest, IsZeroAtTheBoundsOfTheActivation) {
  const std::vector<float> dst = {-1, 0, 0.5F, 5.5F, 6, 7};
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    std::vector<float> diff(dst.size(), 2);
    const BlobDesc desc{1, static_cast<int64_t>(dst.size())};
    ApplyActivationGradient(activation, desc, dst.data(), diff.data());
    for (size_t i = 0; i < dst.size(); ++i) {
      const bool inside = dst[i] > LowerBound(activation) && dst[i] < UpperBound(activation);
      EXPECT_EQ(diff[i], inside ? 2 : 0) << dst[i];
    }
  }
}

// An activation without bounds is not silently treated as another.
TEST(ActivationGradientDeathTest, AnActivationWithoutBoundsEndsTheProcess) {
  float dst = 7, diff = 2;
  const auto added = static_cast<Activation>(99);
  EXPECT_DEATH(ApplyActivationGradient(added, {1, 1}, &dst, &diff), "no such activation");
}

}  // namespace
}  // namespace ringtail
