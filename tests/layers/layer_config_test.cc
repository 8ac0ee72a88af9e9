// How layers of every kind treat their config and the element types of their inputs.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "layers/net.pb.h"
#include "tests/layers/layer_cases.h"

namespace ringtail {
namespace {

// A config may be a temporary: a layer keeps what it needs of it.
TEST(LayerConfigTest, NeedNotOutliveItsLayer) {
  for (const LayerCase& layer_case : LayerCases()) {
    LayerConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(layer_case.config, &config));
    auto kept = CreateLayer(config, /*key=*/1);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    const auto expected = (*kept)->InferShape(layer_case.src);
    ASSERT_TRUE(expected.ok()) << layer_case.name << ": " << expected.status().ToString();

    auto layer = CreateLayer(config, /*key=*/1);
    auto* kind = config.GetReflection()->MutableMessage(
        &config, config.GetDescriptor()->FindFieldByNumber(config.kind_case()));
    kind->Clear();
    const auto shape = (*layer)->InferShape(layer_case.src);
    ASSERT_TRUE(shape.ok()) << layer_case.name << ": " << shape.status().ToString();
    EXPECT_TRUE(shape->dst.SameShape(expected->dst)) << layer_case.name;
    EXPECT_EQ(shape->parameters.size(), expected->parameters.size()) << layer_case.name;
  }
}

// A layer that knows floats alone must not take another element type for one.
TEST(LayerConfigDeathTest, BlobTypesThatALayerDoesNotKnowAreRefused) {
  std::set<std::string> checked;
  int refused = 0;
  for (const LayerCase& layer_case : LayerCases()) {
    if (!checked.insert(layer_case.config.substr(0, layer_case.config.find(' '))).second) continue;
    LayerConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(layer_case.config, &config));
    auto layer = CreateLayer(config, /*key=*/1);
    ASSERT_TRUE(layer.ok()) << layer.status().ToString();
    std::vector<BlobDesc> src = layer_case.src;
    for (BlobDesc& desc : src) desc.type = BlobType::kBf16;
    ASSERT_TRUE((*layer)->InferShape(src).ok());
    const std::vector<BlobType> types(src.size(), BlobType::kBf16);
    if ((*layer)->RunsOn(types, BlobType::kBf16)) continue;  // bf16_layers_test.cc
    ++refused;
    const std::vector<const Parameter*> parameters(4, nullptr);
    EXPECT_DEATH(
        { auto plan = (*layer)->Setup({.src = src, .parameters = parameters, .allocate = false}); },
        "computes on f32 alone")
        << layer_case.name;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace ringtail
