#include "layers/net/expand.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

std::vector<ExpandedLayer> Expand(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  std::string origin;
  auto layers = ExpandLayers(config, &origin);
  EXPECT_TRUE(layers.ok()) << layers.status().ToString();
  return layers.ok() ? *std::move(layers) : std::vector<ExpandedLayer>();
}

std::vector<std::string> Lines(const std::vector<ExpandedLayer>& layers) {
  std::vector<std::string> lines;
  for (const ExpandedLayer& layer : layers) {
    std::string line = layer.config.name() + ":" + KindName(layer.config);
    for (const std::string& input : layer.config.input()) line += " <" + input;
    lines.push_back(line);
  }
  return lines;
}

TEST(ExpandTest, ALayerReadsTheOneAboveUnlessToldOtherwise) {
  EXPECT_THAT(Lines(Expand(R"(layer { name: "a" relu {} } layer { name: "b" tanh {} }
                              layer { name: "c" input: "a" input: "b" add {} })")),
              testing::ElementsAre("a:relu <images", "b:tanh <a", "c:add <a <b"));
}

TEST(ExpandTest, BasicStageProjectsOnlyWhereTheShapeChanges) {
  EXPECT_THAT(
      Lines(Expand(R"(layer { name: "s" residual_stage { blocks: 2 channels: 8 stride: 2 } })")),
      testing::ElementsAre("s.0.conv1:convolution <images", "s.0.bn1:batch_norm <s.0.conv1",
                           "s.0.relu1:relu <s.0.bn1", "s.0.conv2:convolution <s.0.relu1",
                           "s.0.bn2:batch_norm <s.0.conv2", "s.0.downsample.0:convolution <images",
                           "s.0.downsample.1:batch_norm <s.0.downsample.0",
                           "s.0.add:add <s.0.bn2 <s.0.downsample.1", "s.0.relu:relu <s.0.add",
                           "s.1.conv1:convolution <s.0.relu", "s.1.bn1:batch_norm <s.1.conv1",
                           "s.1.relu1:relu <s.1.bn1", "s.1.conv2:convolution <s.1.relu1",
                           "s.1.bn2:batch_norm <s.1.conv2", "s.1.add:add <s.1.bn2 <s.0.relu",
                           "s.1.relu:relu <s.1.add"));
}

TEST(ExpandTest, BottleneckHasFourTimesTheChannels) {
  const auto layers =
      Expand(R"(layer { name: "s" residual_stage { block: BOTTLENECK blocks: 1 channels: 8
                                                                   zero_gamma: true } })");
  for (const ExpandedLayer& layer : layers) {
    if (layer.config.name() == "s.0.conv3") {
      EXPECT_EQ(layer.config.convolution().out_channels(), 32);
    }
    if (layer.config.name() == "s.0.bn3") {
      EXPECT_EQ(layer.config.batch_norm().weight_init().constant().value(), 0);
    }
  }
  EXPECT_EQ(layers.size(), 12U);
}

TEST(ExpandTest, InvertedResidualsAreNumberedOverTheNet) {
  const auto lines = Lines(Expand(R"(
      layer { name: "a" inverted_residual_stage { expansion: 1 channels: 4 block_name: "f" first: 1 } }
      layer { name: "b" inverted_residual_stage { expansion: 6 channels: 4 blocks: 1 block_name: "f" first: 2 } })"));
  EXPECT_THAT(lines, testing::Contains("f.1.conv.0.0:convolution <images"));
  EXPECT_THAT(lines, testing::Contains("f.1.conv.1:convolution <f.1.conv.0.2"));
  EXPECT_THAT(lines, testing::Contains("f.2.conv.0.0:convolution <f.1.conv.2"));
  EXPECT_THAT(lines, testing::Contains("f.2.conv.add:add <f.2.conv.3 <f.1.conv.2"));
}

TEST(ExpandTest, RepeatCopiesAndResolvesNames) {
  EXPECT_THAT(
      Lines(Expand(R"(layer { name: "x" relu {} }
                              layer { name: "r" repeat { count: 2
                                layer { name: "a" tanh {} }
                                layer { name: "b" input: "a" input: "previous" add {} } } }
                              layer { name: "y" input: "r" input: "x" add {} })")),
      testing::ElementsAre("x:relu <images", "r.0.a:tanh <x", "r.0.b:add <r.0.a <x",
                           "r.1.a:tanh <r.0.b", "r.1.b:add <r.1.a <r.0.b", "y:add <r.1.b <x"));
}

TEST(ExpandTest, ErrorsSayWhichLayerOfTheConfig) {
  NetConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(layer { name: "conv1" relu {} } layer { name: "b" input: "conv" relu {} })", &config));
  std::string origin;
  const auto layers = ExpandLayers(config, &origin);
  ASSERT_FALSE(layers.ok());
  EXPECT_EQ(origin, "layer[1].input[0]");
  EXPECT_THAT(layers.status().message(),
              testing::HasSubstr("layer 'b': input 'conv' is no layer above"));
  EXPECT_THAT(layers.status().message(), testing::HasSubstr("did you mean 'conv1'?"));
}

TEST(ExpandTest, NamesOfBlocksAreLikeThoseOfLayers) {
  for (const char* name : {"a b", "", "images"}) {
    NetConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        fmt::format(
            R"(layer {{ name: "a" inverted_residual_stage {{ channels: 4 block_name: "{}" }} }})",
            name),
        &config));
    std::string origin;
    const std::string expected = *name == '\0'
                                     ? "block_name is missing"
                                     : fmt::format("block_name is '{}'; it must be 1 to 200", name);
    EXPECT_THAT(ExpandLayers(config, &origin).status().message(), testing::HasSubstr(expected));
  }
}

TEST(ExpandTest, TheRepeatsOwnInputIsNoLayersName) {
  NetConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(layer { name: "r.0.previous" relu {} }
         layer { name: "r" repeat { layer { name: "a" relu {} } } })",
      &config));
  std::string origin;
  const auto layers = ExpandLayers(config, &origin);
  ASSERT_FALSE(layers.ok());
  EXPECT_THAT(layers.status().message(), testing::HasSubstr("'r.0.previous'"));
}

}  // namespace
}  // namespace ringtail
