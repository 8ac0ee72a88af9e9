// What layers do with their config, whatever the kind.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ringtail
