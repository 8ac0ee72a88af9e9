#include "dist/compression/scheme_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "dist/compression/layer_costs.h"
#include "dist/compression/schemes.h"
#include "tests/testing/parse_config.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

CompressionConfig Config(const std::string& text) { return ParseConfig<CompressionConfig>(text); }

TEST(MatchesPattern, StarsMatchAnything) {
  EXPECT_TRUE(MatchesPattern("layer4.0.conv1.weight", "layer4.*"));
  EXPECT_FALSE(MatchesPattern("layer4.0.conv1.weight", "*.conv?.weight"));
  EXPECT_TRUE(MatchesPattern("layer4.0.conv1.weight", "*.conv*.weight"));
  EXPECT_TRUE(MatchesPattern("fc.weight", "fc.weight"));
  EXPECT_TRUE(MatchesPattern("fc.weight", "**"));
  EXPECT_FALSE(MatchesPattern("fc.weight", "fc"));
  EXPECT_FALSE(MatchesPattern("fc.weight", "*c"));
  EXPECT_FALSE(MatchesPattern("", "?"));
  EXPECT_TRUE(MatchesPattern("aaab", "*a*b"));
  EXPECT_TRUE(MatchesPattern("abcabd", "*ab*d"));
  EXPECT_FALSE(MatchesPattern("abcabd", "*abc*abc"));
  const std::string stars = std::string(40, '*') + "b", as(10'000, 'a');
  EXPECT_FALSE(MatchesPattern(as, stars)) << "and at once";
  EXPECT_TRUE(MatchesPattern("", "*"));
}

TEST(ValidateCompression, NamesTheFieldThatIsOutOfRange) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"scheme { qsgd { levels: 128 } }", "dist.compression.scheme.qsgd.levels"},
      {"scheme { qsgd { levels: 0 } }", "levels is 0"},
      {"scheme { two_bit { factor: 0 } }", "two_bit.factor"},
      {"scheme { two_bit { threshold: -1 } }", "two_bit.threshold"},
      {"scheme { top_k { density: 0 } }", "top_k.density"},
      {"scheme { random_k { density: 1.5 } }", "random_k.density"},
      {"scheme { dgc { momentum: 1 } }", "dgc.momentum"},
      {"scheme { dgc { clip_norm: -1 } }", "dgc.clip_norm"},
      {"scheme { dgc {} } dense_epochs: 1", "dense_epochs"},
      {"scheme { dgc {} } rule { scheme { dgc { momentum: 0.5 } } }",
       "dist.compression.rule[0].scheme.dgc.momentum: momentum is the same for all layers"},
      {"rule { scheme { dgc {} } } rule { scheme { dgc { nesterov: true } } }",
       "dist.compression.rule[1].scheme.dgc.nesterov"},
      {"scheme { dgc { clip_norm: 2 } } rule { scheme { dgc {} } }",
       "rule[0].scheme.dgc.clip_norm"},
      {"scheme { power_sgd { rank: 33 } }", "power_sgd.rank"},
      {"scheme { important_filters { max_rate: 0.1 min_rate: 0.2 } }", "min_rate"},
      {"scheme { hylo { linear { factor: -1 } } }", "hylo.linear.factor"},
      {"scheme { hylo { convolution { theta: 0 } } }", "hylo.convolution.theta"},
      {"rule { kind: LINEAR }", "dist.compression.rule[0].scheme"},
      {"rule { min_elements: 5 max_elements: 4 scheme { dense {} } }", "no layer fits"},
      {"rule { scheme { linear8 {} } every_steps: 0 }", "rule[0].every_steps"},
      {"rule { scheme { dense {} } every_steps: 2 }", "uncompressed cannot wait"},
      {"rule { scheme {} every_steps: 2 }", "uncompressed cannot wait"},
      {"rule { scheme { qsgd {} } every_steps: 2 }", "draws at random cannot wait"},
      {"rule { scheme { terngrad {} } every_steps: 2 }", "draws at random cannot wait"},
      {"scheme { two_bit { threshold: 1e-31 } }", "two_bit.threshold"},
      {"scheme { hylo { linear { threshold: 1e-31 } } }", "hylo.linear.threshold"},
      {"error_feedback: false rule { scheme { linear8 {} } every_steps: 2 }", "in the residual"},
      {"statistics_every_steps: 0", "statistics_every_steps"},
      {"min_elements: -1", "min_elements"},
      {"guard_min_cosine: 2", "guard_min_cosine"},
      {"guard_every_steps: -1", "guard_every_steps"}};
  for (const auto& [text, message] : wrong) {
    const Status status = ValidateCompression(Config(text), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(message)) << text;
  }
}

TEST(ValidateCompression, DefaultsOfEverySchemeAreValid) {
  const auto* kinds = CompressionScheme::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) {
    const CompressionConfig config = Config("scheme { " + kinds->field(i)->name() + " {} }");
    EXPECT_TRUE(ValidateCompression(config, nullptr).ok()) << kinds->field(i)->name();
    EXPECT_EQ(CompressesAnything(config), kinds->field(i)->name() != "dense");
  }
  EXPECT_FALSE(CompressesAnything(CompressionConfig()));
}

// Whatever min_elements says; rules of other kinds, and the scheme for all, leave them dense.
TEST(ChooseSchemes, OnlyARuleOfTheirKindFitsVectors) {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {100, 100}, .kind = ParameterKind::kLinearWeight},
       {.name = "b", .shape = {100}}},
      {}));
  const auto names_of = [&](const std::string& text) {
    std::vector<std::string> names;
    for (const LayerScheme& layer : ChooseSchemes(Config(text), arena->parameters(), 1)) {
      names.push_back(fmt::format("{} {}", layer.name, layer.every_steps));
    }
    return names;
  };
  EXPECT_THAT(names_of("scheme { bf16 {} } rule { name: \"*\" scheme { linear8 {} } }"),
              testing::ElementsAre("linear8 1", "dense 1"));
  EXPECT_THAT(
      names_of("scheme { bf16 {} } rule { kind: VECTOR scheme { linear8 {} } every_steps: 4 }"),
      testing::ElementsAre("bf16 1", "linear8 4"));
}

TEST(ChooseSchemes, WhatWaitsHasAMemory) {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {100, 100}, .kind = ParameterKind::kLinearWeight}}, {}));
  const auto memory_of = [&](const std::string& rule) {
    return ChooseSchemes(Config("rule { " + rule + " }"), arena->parameters(), 1)[0].memory;
  };
  EXPECT_EQ(memory_of("scheme { bf16 {} }"), MemoryKind::kNone);
  EXPECT_EQ(memory_of("scheme { bf16 {} } every_steps: 2"), MemoryKind::kErrorFeedback);
}

TEST(LayerCosts, AreMeansOverTheStepsThatALayerWaits) {
  const GradientShape shape{.rows = 100, .columns = 100};
  LayerScheme scheme = MakeLayerScheme(Config("scheme { linear8 {} }").scheme(), shape);
  const LayerCoding coding{.encode_seconds = 1, .decode_seconds = 2};
  const LayerCosts every = CostsOf(scheme, shape, coding, 4, 1e-3);
  scheme.every_steps = 4;
  const LayerCosts fourth = CostsOf(scheme, shape, coding, 4, 1e-3);
  EXPECT_NEAR(fourth.gathered, every.gathered / 4, 1e-3);
  EXPECT_NEAR(fourth.sharded, every.sharded / 4, 1e-3);
  EXPECT_EQ(fourth.dense, every.dense);
}

TEST(ChooseSchemes, SparseValuesHaveTheFormatOfTheConfig) {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {1000, 1000}, .kind = ParameterKind::kLinearWeight}}, {}));
  const auto describe = [&](const std::string& scheme) {
    const auto schemes = ChooseSchemes(Config("scheme { " + scheme + " }"), arena->parameters(), 1);
    return schemes[0].codec->Describe();
  };
  EXPECT_EQ(describe("top_k {}"), "the largest 1% as f32");
  EXPECT_EQ(describe("top_k { values: F16 }"), "the largest 1% as f16");
  EXPECT_EQ(describe("top_k { values: BF16 }"), "the largest 1% as bf16");
  EXPECT_EQ(describe("dgc { warm_up: false }"), "DGC: 0.1% as f32");
  EXPECT_EQ(describe("dgc { warm_up: false values: F16 }"), "DGC: 0.1% as f16");
  EXPECT_EQ(describe("dgc { values: BF16 }"), "DGC: 25% to 0.1% by epoch 4, as bf16");
}

// ---- layer_costs.h ------------------------------------------------------------------------------

const GradientShape kShape{.kind = ParameterKind::kLinearWeight, .rows = 1000, .columns = 1000};

LayerScheme OneBit() {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {1000, 1000}, .kind = ParameterKind::kLinearWeight}}, {}));
  return std::move(ChooseSchemes(Config("scheme { one_bit {} }"), arena->parameters(), 1)[0]);
}

TEST(LayerCosts, FollowTheFormulas) {
  const LayerScheme scheme = OneBit();
  const LayerCoding coding{.encode_seconds = 3, .decode_seconds = 5};
  const LayerCosts costs = CostsOf(scheme, kShape, coding, 4, 1e-6);
  // A bit per element, and 8 bytes per 512 elements: of the whole, and of a quarter.
  constexpr double kPayload = 125'000 + 8 * 1954, kQuarter = 31'250 + 8 * 489 + 2;  // aligned
  EXPECT_DOUBLE_EQ(costs.dense, 1.5 * 4e6 * 1e-6);
  EXPECT_DOUBLE_EQ(costs.gathered, 3 * kPayload * 1e-6 + 3 + 4 * 5);
  EXPECT_DOUBLE_EQ(costs.sharded, 6 * kQuarter * 1e-6 + 1.25 * 3 + 2 * 5);
}

TEST(LayerCosts, OnlyPossibleRoutesHaveACost) {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {1000, 1000}, .kind = ParameterKind::kLinearWeight}}, {}));
  const auto costs = [&](const std::string& scheme) {
    const auto schemes = ChooseSchemes(Config("scheme { " + scheme + " }"), arena->parameters(), 1);
    return CostsOf(schemes[0], kShape, {}, 4, 1);
  };
  EXPECT_TRUE(std::isinf(costs("dense {}").gathered));
  EXPECT_TRUE(std::isinf(costs("dgc {}").sharded)) << "its momentum belongs to the whole";
  EXPECT_TRUE(std::isinf(costs("important_filters {}").sharded)) << "filters are whole";
  EXPECT_TRUE(std::isinf(costs("top_k {}").sketched));
  EXPECT_FALSE(std::isinf(costs("top_k {}").sharded));
  EXPECT_TRUE(std::isinf(costs("power_sgd {}").gathered));
  EXPECT_DOUBLE_EQ(costs("power_sgd { rank: 2 }").sketched, 1.5 * 4 * 2 * 2000);
  // Long after its warm-up, which sends more.
  // Values, upper parts of 1300 + 1953 bits, lower parts of 9 bits each; aligned.
  EXPECT_DOUBLE_EQ(costs("dgc {}").gathered, 3 * (4 * 1300 + 407 + 1463 + 2));
}

TEST(LayerCosts, CodingPaysOnSlowNetworksOnly) {
  const LayerScheme scheme = OneBit();
  const LayerCoding coding{.encode_seconds = 4e-3, .decode_seconds = 1e-3};
  const auto cheapest = [&](int world, double seconds_per_byte) {
    return Cheapest(CostsOf(scheme, kShape, coding, world, seconds_per_byte));
  };
  EXPECT_EQ(cheapest(2, 1e-8), LayerRoute::kGathered);  // 100 MB/s
  EXPECT_EQ(cheapest(16, 1e-8), LayerRoute::kSharded);
  EXPECT_EQ(cheapest(2, 1e-10), LayerRoute::kDense);  // 10 GB/s
  EXPECT_EQ(cheapest(16, 1e-10), LayerRoute::kDense);
}

TEST(LayerCosts, MeasuringRestoresASketch) {
  const auto arena = std::move(*ParameterArena::Create(
      {{.name = "w", .shape = {100, 100}, .kind = ParameterKind::kLinearWeight}}, {}));
  auto schemes = ChooseSchemes(Config("scheme { power_sgd { rank: 1 } }"), arena->parameters(), 1);
  Sketch* const sketch = schemes[0].sketch.get();
  ASSERT_NE(sketch, nullptr);
  const std::vector<float> before(sketch->state().begin(), sketch->state().end());
  const LayerCoding coding = MeasureCoding(
      schemes[0], {.kind = ParameterKind::kLinearWeight, .rows = 100, .columns = 100});
  EXPECT_GT(coding.encode_seconds, 0);
  EXPECT_TRUE(std::ranges::equal(sketch->state(), before));
}

}  // namespace
}  // namespace ringtail
