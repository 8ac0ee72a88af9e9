// The gradient check: every kind of layer, in every layout, against finite differences of itself,
// against a naive reference in double, and against itself run in other ways. A layer that has no
// row in tests/layers/layer_cases.cc fails the last test of this file.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "layers/kernels/winograd/winograd_multiply.h"
#include "layers/net.pb.h"
#include "tests/layers/checked_layer.h"

namespace ringtail {
namespace {

constexpr uint64_t kSeed = 20;
constexpr int kSamples = 24;    // elements of each tensor that are moved one by one
constexpr int kDirections = 2;  // in which all elements are moved at once
constexpr double kNaiveDistance = 1e-6;
// Relative to the largest value of its tensor, or to 1: about a hundred roundings of f32.
constexpr double kTolerance = 1e-5;
// For finite differences in f32: roundings are divided by the distance.
constexpr double kFiniteDifferenceTolerance = 2e-3;

using Case = std::tuple<const LayerCase*, Layout>;

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return std::get<0>(info.param)->name + "_" + LayoutName(std::get<1>(info.param));
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const LayerCase& layer_case : LayerCases()) {
    for (const Layout layout : kLayouts) {
      if (layout == Layout::kMixed && layer_case.src.size() == 1) continue;
      cases.emplace_back(&layer_case, layout);
    }
  }
  return cases;
}

template <typename Values>
double Largest(const Values& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

template <typename Values>
double Loss(const Values& dst, const std::vector<float>& projection) {
  double loss = 0;
  for (size_t i = 0; i < projection.size(); ++i)
    loss += projection[i] * static_cast<double>(dst[i]);
  return loss;
}

// Which piece of a piecewise linear function each element is on; kinks lie at 0 and 6.
template <typename Values>
std::vector<int> Pieces(const Values& dst) {
  std::vector<int> pieces;
  pieces.reserve(dst.size());
  for (const double value : dst) pieces.push_back(value <= 0 ? 0 : value < 6 ? 1 : 2);
  return pieces;
}

// An input or a parameter, and the layer's gradient of it.
struct Tensor {
  std::string name;
  bool is_parameter;
  size_t index;
  std::vector<float> gradient;
};

std::vector<Tensor> RunBackward(CheckedLayer* layer) {
  std::vector<Tensor> tensors;
  const auto diff_src = layer->Backward();
  for (size_t i = 0; i < diff_src.size(); ++i) {
    tensors.push_back({"src[" + std::to_string(i) + "]", false, i, diff_src[i]});
  }
  for (size_t i = 0; i < layer->runner().num_parameters(); ++i) {
    const Parameter& parameter = layer->runner().parameter(i);
    if (parameter.is_buffer) continue;
    const auto grad = parameter.grad();
    tensors.push_back({parameter.spec.name, true, i, {grad.begin(), grad.end()}});
  }
  return tensors;
}

// Indices of a tensor, the first and the last among them.
std::vector<size_t> Samples(size_t count) {
  std::vector<size_t> samples = {0, count - 1};
  Rng rng(RngKey(kSeed).With(kTestStream).With(count));
  for (int i = 0; i < kSamples; ++i) samples.push_back(rng.Below(count));
  return samples;
}

class GradientCheckTest : public testing::TestWithParam<Case> {
 protected:
  CheckedLayer MakeLayer(bool training = true, bool in_place = false,
                         std::vector<char> needs_diff_src = {}) const {
    const auto& [layer_case, layout] = GetParam();
    return {*layer_case,
            layout,
            {.training = training,
             .in_place = in_place,
             .needs_diff_src = std::move(needs_diff_src),
             .seed = kSeed}};
  }
  static double Tolerance() { return kTolerance * std::get<0>(GetParam())->rounding; }
  // For failures: what to run to see this one again.
  static std::string Repro() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("again: --gtest_filter=") + test->test_suite_name() + "." + test->name() +
           " (seed " + std::to_string(kSeed) + ")";
  }
};

TEST_P(GradientCheckTest, ForwardMatchesTheNaiveReference) {
  SCOPED_TRACE(Repro());
  for (const bool training : {true, false}) {
    for (const bool in_place : {false, true}) {
      CheckedLayer layer = MakeLayer(training, in_place);
      ASSERT_TRUE(layer.status().ok()) << layer.status().ToString();
      const Doubles expected = layer.Naive(layer.src_doubles(), layer.parameter_doubles());
      const std::vector<float> dst = layer.Forward();
      ASSERT_EQ(dst.size(), expected.size());
      const double tolerance = Tolerance() * std::max(1.0, Largest(expected));
      for (size_t i = 0; i < dst.size(); ++i) {
        ASSERT_NEAR(dst[i], expected[i], tolerance) << "dst element " << i;
      }
      EXPECT_EQ(layer.runner().problems(), "");
    }
  }
}

// Moves single elements in the layer itself.
TEST_P(GradientCheckTest, BackwardMatchesFiniteDifferencesOfForward) {
  SCOPED_TRACE(Repro());
  const float distance = std::get<0>(GetParam())->distance;
  CheckedLayer layer = MakeLayer();
  ASSERT_TRUE(layer.status().ok()) << layer.status().ToString();
  layer.Forward();
  for (const Tensor& tensor : RunBackward(&layer)) {
    const std::span<float> values = tensor.is_parameter
                                        ? layer.runner().parameter(tensor.index).value()
                                        : std::span<float>(layer.src()[tensor.index]);
    ASSERT_EQ(tensor.gradient.size(), values.size()) << tensor.name;
    const double tolerance = kFiniteDifferenceTolerance * std::max(1.0, Largest(tensor.gradient));
    int checked = 0;
    for (const size_t i : Samples(values.size())) {
      const float value = values[i], above = value + distance, below = value - distance;
      values[i] = above;
      const std::vector<float> dst_above = layer.Forward();
      values[i] = below;
      const std::vector<float> dst_below = layer.Forward();
      values[i] = value;
      if (layer.HasKinks() && Pieces(dst_above) != Pieces(dst_below)) continue;
      const double difference =
          Loss(dst_above, layer.projection()) - Loss(dst_below, layer.projection());
      const double run = static_cast<double>(above) - below;  // as rounded
      EXPECT_NEAR(tensor.gradient[i], difference / run, tolerance)
          << tensor.name << " element " << i;
      ++checked;
    }
    EXPECT_GT(checked, kSamples / 4) << tensor.name << ": nearly all samples lie at a kink";
  }
}

// Moves all elements at once, then single ones, in the reference.
TEST_P(GradientCheckTest, BackwardMatchesFiniteDifferencesOfTheReference) {
  SCOPED_TRACE(Repro());
  CheckedLayer layer = MakeLayer();
  ASSERT_TRUE(layer.status().ok()) << layer.status().ToString();
  std::vector<Doubles> src = layer.src_doubles(), parameters = layer.parameter_doubles();
  layer.Forward();
  for (const Tensor& tensor : RunBackward(&layer)) {
    Doubles& values = tensor.is_parameter ? parameters[tensor.index] : src[tensor.index];
    // The slope of the loss along `direction` minus what the gradient says it is; NaN at a kink.
    const auto error_along = [&](const Doubles& direction) {
      const Doubles start = values;
      double expected = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = start[i] + kNaiveDistance * direction[i];
        expected += tensor.gradient[i] * direction[i];
      }
      const Doubles above = layer.Naive(src, parameters);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = start[i] - kNaiveDistance * direction[i];
      }
      const Doubles below = layer.Naive(src, parameters);
      values = start;
      if (layer.HasKinks() && Pieces(above) != Pieces(below)) return std::nan("");
      const double slope = Loss(above, layer.projection()) - Loss(below, layer.projection());
      return slope / (2 * kNaiveDistance) - expected;
    };

    const double tolerance = Tolerance() * std::max(1.0, Largest(tensor.gradient));
    Rng rng(RngKey(kSeed).With(kTestStream).With("directions"));
    int checked = 0;
    for (int i = 0; i < kDirections; ++i) {
      Doubles direction(values.size());
      for (double& d : direction) d = rng.Below(2) == 0 ? -1 : 1;
      const double error = error_along(direction);
      if (std::isnan(error)) continue;
      EXPECT_NEAR(error, 0, tolerance * std::sqrt(values.size())) << tensor.name << " as a whole";
      ++checked;
    }
    EXPECT_GT(checked, 0) << tensor.name << ": a kink in every direction";
    for (const size_t i : Samples(values.size())) {
      Doubles direction(values.size(), 0.0);
      direction[i] = 1;
      const double error = error_along(direction);
      ASSERT_TRUE(std::isfinite(error)) << tensor.name << " element " << i << " lies at a kink";
      EXPECT_NEAR(error, 0, tolerance) << tensor.name << " element " << i;
    }
  }
}

// dst and all gradients, bit for bit, after a Forward and a Backward.
std::vector<std::vector<float>> Results(CheckedLayer layer) {
  RT_CHECK(layer.status().ok(), layer.status().ToString());
  std::vector<std::vector<float>> results = {layer.Forward()};
  for (const Tensor& tensor : RunBackward(&layer)) results.push_back(tensor.gradient);
  EXPECT_EQ(layer.runner().problems(), "");
  return results;
}

TEST_P(GradientCheckTest, ResultsDoNotDependOnTheRunOrThePlace) {
  SCOPED_TRACE(Repro());
  ASSERT_TRUE(MakeLayer().status().ok()) << MakeLayer().status().ToString();
  const auto expected = Results(MakeLayer());
  EXPECT_EQ(Results(MakeLayer()), expected) << "a second run gives other bits";
  EXPECT_EQ(Results(MakeLayer(true, /*in_place=*/true)), expected) << "in place gives other bits";

  CheckedLayer again = MakeLayer();
  const std::vector<float> first = again.Forward();
  again.Backward();
  EXPECT_EQ(again.Forward(), first) << "the second pass of a layer gives other bits";
}

// Whether all are equal but for rounding; both may be empty.
bool AlmostEqual(const std::vector<float>& a, const std::vector<float>& b, double rounding) {
  const double kRounding = 1e-5 * rounding;  // of the largest
  if (a.size() != b.size()) return false;
  const double scale = Largest(Doubles(b.begin(), b.end()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kRounding * scale)) return false;
  }
  return true;
}

// Bits may differ: of a convolution, another algorithm may be the fastest for what is left.
TEST_P(GradientCheckTest, GradientsThatAreNotNeededAreLeftOut) {
  SCOPED_TRACE(Repro());
  ASSERT_TRUE(MakeLayer().status().ok()) << MakeLayer().status().ToString();
  const auto expected = Results(MakeLayer());
  const size_t inputs = std::get<0>(GetParam())->src.size();
  for (size_t skip = 0; skip < inputs; ++skip) {
    std::vector<char> needs(inputs, 1);
    needs[skip] = 0;
    const auto results = Results(MakeLayer(true, /*in_place=*/true, needs));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const bool skipped = i == 1 + skip;  // dst is the first
      EXPECT_TRUE(AlmostEqual(results[i], skipped ? std::vector<float>() : expected[i],
                              std::get<0>(GetParam())->rounding))
          << "tensor " << i << ": " << testing::PrintToString(results[i]);
    }
  }
}

// A convolution's algorithm that the config names is the one that runs, or the row proves nothing.
TEST_P(GradientCheckTest, RunsTheAlgorithmThatItsConfigNames) {
  SCOPED_TRACE(Repro());
  const auto& [layer_case, layout] = GetParam();
  CheckedLayer layer = MakeLayer();
  ASSERT_TRUE(layer.status().ok()) << layer.status().ToString();
  const int64_t lanes = RT_KERNEL(WinogradLanes)();
  if (InLayout(layer_case->src, layout)[0].block != lanes) return;
  EXPECT_THAT(layer.implementation(), testing::HasSubstr(layer_case->algorithm));
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientCheckTest, testing::ValuesIn(AllCases()), CaseName);

TEST(LayerCasesTest, EveryPrimitiveKindHasTwoOrMore) {
  const std::vector<std::string> composites = {"residual_stage", "inverted_residual_stage",
                                               "repeat"};
  std::map<std::string, int> cases;
  for (const LayerCase& layer_case : LayerCases()) {
    ++cases[layer_case.config.substr(0, layer_case.config.find(' '))];
  }
  const auto* kinds = LayerConfig::descriptor()->FindOneofByName("kind");
  ASSERT_NE(kinds, nullptr);
  for (int i = 0; i < kinds->field_count(); ++i) {
    const std::string& kind = kinds->field(i)->name();
    if (std::ranges::find(composites, kind) != composites.end()) continue;
    EXPECT_GE(cases[kind], 2) << kind << " has too few rows in tests/layers/layer_cases.cc";
  }
}

// FASTEST is in the rows without a name.
TEST(LayerCasesTest, EveryConvolutionAlgorithmHasARow) {
  std::map<std::string, int> cases;
  for (const LayerCase& layer_case : LayerCases()) {
    if (layer_case.algorithm.empty()) continue;
    LayerConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(layer_case.config, &config));
    ++cases[ConvolutionPolicy_Name(config.convolution().algorithm())];
  }
  const auto* policies = ConvolutionPolicy_descriptor();
  for (int i = 0; i < policies->value_count(); ++i) {
    const std::string& name = policies->value(i)->name();
    if (name == "FASTEST") continue;
    EXPECT_GE(cases[name], 1) << name << " has no row in tests/layers/layer_cases.cc";
  }
}

}  // namespace
}  // namespace ringtail
