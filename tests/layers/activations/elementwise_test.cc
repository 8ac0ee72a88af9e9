// The stand-alone activations: values, gradients from dst alone, in place, padding, NaN.
#include "layers/activations/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string kind;
  void (*configure)(LayerConfig*);
  double (*value)(double);
  double (*slope)(double);
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Case kCases[] = {
    {"relu", [](LayerConfig* c) { c->mutable_relu(); }, [](double x) { return x > 0 ? x : 0; },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"relu6", [](LayerConfig* c) { c->mutable_relu6(); },
     [](double x) { return std::min(std::max(x, 0.0), 6.0); },
     [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }},
    {"leaky_relu", [](LayerConfig* c) { c->mutable_leaky_relu()->set_slope(0.25); },
     [](double x) { return x > 0 ? x : 0.25 * x; }, [](double x) { return x > 0 ? 1.0 : 0.25; }},
    {"sigmoid", [](LayerConfig* c) { c->mutable_sigmoid(); }, Sigmoid,
     [](double x) { return Sigmoid(x) * (1 - Sigmoid(x)); }},
    {"tanh", [](LayerConfig* c) { c->mutable_tanh(); }, [](double x) { return std::tanh(x); },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
};

class ElementwiseTest : public testing::TestWithParam<Case> {
 protected:
  ElementwiseTest() {
    GetParam().configure(&config_);
    auto layer = CreateLayer(config_, /*key=*/0);
    RT_CHECK(layer.ok(), layer.status().ToString());
    layer_ = std::move(*layer);
  }
  LayerConfig config_;
  std::unique_ptr<Layer> layer_;
};

TEST_P(ElementwiseTest, EqualsTheFormulaInPlaceAndNot) {
  for (const BlobDesc& desc : {BlobDesc{2, 17, 5, 7, 16}, BlobDesc{1, 3, 9, 9, 8},
                               BlobDesc{3, 11, 1, 1, 1}, BlobDesc{2, 64, 40, 41, 16}}) {
    for (const bool in_place : {true, false}) {
      LayerRunner runner(layer_.get(), {desc}, {.in_place = in_place});
      ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
      const std::vector<float> src = RandomPlain(desc, 1, -9, 9), diff_dst = RandomPlain(desc, 2);
      const std::vector<float> dst = runner.Forward({src});
      const std::vector<float> diff_src = runner.Backward(diff_dst)[0];
      for (size_t i = 0; i < src.size(); ++i) {
        ASSERT_NEAR(dst[i], GetParam().value(src[i]), 1e-6) << "src " << src[i];
        ASSERT_NEAR(diff_src[i], GetParam().slope(src[i]) * diff_dst[i], 1e-6) << "src " << src[i];
      }
      EXPECT_EQ(runner.problems(), "");
    }
  }
}

TEST_P(ElementwiseTest, KeepsItsValueAtTheEnds) {
  LayerRunner runner(layer_.get(), {{1, 4, 1, 1, 8}});
  const std::vector<float> dst = runner.Forward({{-200, 200, 0, NAN}});
  EXPECT_FLOAT_EQ(dst[0], static_cast<float>(GetParam().value(-200)));
  EXPECT_FLOAT_EQ(dst[1], static_cast<float>(GetParam().value(200)));
  EXPECT_FLOAT_EQ(dst[2], static_cast<float>(GetParam().value(0)));
  EXPECT_TRUE(std::isnan(dst[3]));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ElementwiseTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.kind; });

TEST(LeakyReluTest, RefusesASlopeOfOneOrMore) {
  for (const float slope : {-0.1F, 1.0F, NAN}) {
    LayerConfig config;
    config.mutable_leaky_relu()->set_slope(slope);
    auto layer = CreateLayer(config, 0);
    ASSERT_TRUE(layer.ok());
    const LayerRunner runner(layer->get(), {{1, 4, 1, 1, 8}});
    EXPECT_THAT(runner.status().message(), HasSubstr("slope is"));
  }
}

}  // namespace
}  // namespace ringtail
