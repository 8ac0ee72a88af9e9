#include "apps/config/class_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/config/shipped_configs.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

TEST(ClassOutputsTest, EveryShippedNetworkGetsAsManyAsThereAreClasses) {
  for (const ShippedConfig& shipped : ShippedConfigs()) {
    LoadedConfig loaded = LoadRunConfig(std::string(shipped.name), {}).value();
    const auto said = FitOutputsToClasses(5, {}, &loaded.config);
    ASSERT_TRUE(said.ok()) << shipped.name;
    EXPECT_THAT(*said, HasSubstr(": 5 outputs, one for each class (configured: 2)"));
    EXPECT_EQ(CreateModel(loaded, /*allocate=*/false).value()->num_classes(), 5) << shipped.name;
    EXPECT_EQ(FitOutputsToClasses(5, {}, &loaded.config).value(), "");
  }
}

RunConfig Parse(const std::string& layers) {
  return ParseRunConfig("net { layer { name: \"a\" " + layers +
                            " layer { name: \"loss\" softmax_cross_entropy {} } }",
                        "test", {})
      .value()
      .config;
}

TEST(ClassOutputsTest, TheLayerIsFoundThroughLayersThatKeepChannels) {
  RunConfig convolution = Parse(
      "convolution { out_channels: 2 kernel: 1 } } layer { name: \"p\" global_average_pool {} } "
      "layer { name: \"f\" flatten {} }");
  EXPECT_EQ(FitOutputsToClasses(3, {}, &convolution).value(),
            "a: 3 outputs, one for each class (configured: 2)");
  EXPECT_EQ(convolution.net().layer(0).convolution().out_channels(), 3);
  RunConfig connect = Parse("drop_connect { linear { out_features: 2 } } }");
  EXPECT_EQ(FitOutputsToClasses(4, {}, &connect).value(),
            "a: 4 outputs, one for each class (configured: 2)");
  RunConfig relu = Parse("linear { out_features: 2 } } layer { name: \"r\" relu {} }");
  EXPECT_EQ(FitOutputsToClasses(4, {}, &relu).value(), "");  // who knows what it is for
}

TEST(ClassOutputsTest, ANumberThatWasSetMustFit) {
  RunConfig config = Parse("linear { out_features: 7 } }");
  const std::vector<std::string> set = {"net.layer[a].linear.out_features=7"};
  EXPECT_THAT(FitOutputsToClasses(9, set, &config).status().message(),
              HasSubstr("the images have 9 classes; leave it out, and 'a' gets as many outputs"));
  EXPECT_EQ(FitOutputsToClasses(7, set, &config).value(), "");
  EXPECT_EQ(FitOutputsToClasses(5, set, &config).value(),
            "a: 7 outputs, as --set says, for 5 classes: no image is of the others");
  EXPECT_EQ(config.net().layer(0).linear().out_features(), 7);
}

TEST(ClassOutputsTest, OneClassChangesNothing) {
  RunConfig config = Parse("linear { out_features: 2 } }");
  EXPECT_EQ(FitOutputsToClasses(1, {}, &config).value(), "");
}

}  // namespace
}  // namespace ringtail
