// The networks in configs/: they build, train a step, and have torchvision's names,
// shapes and counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "apps/run.pb.h"
#include "core/config/text_config.h"
#include "core/random.h"
#include "layers/net/feature_map.h"
#include "layers/net/graph.h"
#include "layers/net/net.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

RunConfig ReadConfig(const std::string& name) {
  RunConfig config;
  const Status status = ReadTextConfig(
      std::string(RT_SOURCE_DIR) + "/configs/" + name + ".textproto", &config, nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return config;
}

struct Shipped {
  const char* name;
  int64_t size, parameters;
  const char* parameter;    // one of its names ...
  const char* shape;        // ... and that one's shape
  const char* feature_map;  // the layer of its last one
};

class ShippedNetworkTest : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedNetworkTest, HasTheReferencesNamesAndCounts) {
  const RunConfig config = ReadConfig(GetParam().name);
  const auto model = Model::Create(config.net(), GetParam().size);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ((*model)->arena().num_parameters(), GetParam().parameters);
  const Parameter* p = (*model)->arena().FindParameter(GetParam().parameter);
  ASSERT_NE(p, nullptr) << GetParam().parameter;
  EXPECT_EQ(ShapeString(p->spec.shape), GetParam().shape);
}

TEST_P(ShippedNetworkTest, HasAFeatureMap) {
  const RunConfig config = ReadConfig(GetParam().name);
  const int64_t size = std::max<int64_t>(GetParam().size, 64);
  const auto model = Model::Create(config.net(), size, nullptr, "net", /*allocate=*/false);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::unique_ptr<Layer>> layers;
  const Graph& graph = (*model)->graph();
  for (const Node& node : graph.nodes()) layers.push_back(node.Instantiate().value());
  int failed = 0;
  const auto shapes = InferShapes(graph, {1, 3, size, size}, layers, &failed);
  ASSERT_TRUE(shapes.ok()) << shapes.status().ToString();
  const auto node = FindFeatureMap(graph, *shapes, "");
  ASSERT_TRUE(node.ok()) << node.status().ToString();
  EXPECT_EQ(graph.nodes()[*node].name, GetParam().feature_map);
}

TEST_P(ShippedNetworkTest, TrainsAStep) {
  constexpr int64_t kBatch = 2;
  const RunConfig config = ReadConfig(GetParam().name);
  auto model = Model::Create(config.net(), GetParam().size);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  (*model)->Initialize(1);
  auto net =
      Net::Create(model->get(),
                  {.batch = kBatch, .image_size = GetParam().size, .algorithms = TestAlgorithms()});
  ASSERT_TRUE(net.ok()) << net.status().ToString();
  std::vector<float> images(kBatch * 3 * GetParam().size * GetParam().size);
  Rng rng(RngKey(1).With(kTestStream));
  for (float& v : images) v = rng.Normal();
  const std::vector<int32_t> labels = {0, 1};
  const LossResult loss = (*net)->Forward({images.data(), labels}, {.seed = 1});
  EXPECT_TRUE(std::isfinite(loss.loss_sum));
  (*net)->Backward();
  double norm = 0;
  for (const float g : (*model)->arena().grads()) norm += static_cast<double>(g) * g;
  EXPECT_TRUE(std::isfinite(norm));
  EXPECT_GT(norm, 0);
}

// Counts: torchvision 0.14, num_classes = 2; for Ringtail's own nets,
// the sum of their layers by hand.
INSTANTIATE_TEST_SUITE_P(
    Configs, ShippedNetworkTest,
    testing::Values(
        Shipped{"lenet", 64, 1142210, "conv3.weight", "128x64x3x3", "conv3"},
        Shipped{"catdog_vgg", 128, 4436674, "fc1.weight", "512x8192", "conv4"},
        Shipped{"alexnet", 224, 57012034, "classifier.1.weight", "4096x9216", "features.10"},
        Shipped{"vgg11_bn", 128, 128780034, "features.25.weight", "512x512x3x3", "features.26"},
        Shipped{"resnet18", 64, 11177538, "layer2.0.downsample.0.weight", "128x64x1x1",
                "layer4.1.add"},
        Shipped{"resnet50", 64, 23512130, "layer4.2.conv3.weight", "2048x512x1x1", "layer4.2.add"},
        Shipped{"mobilenet_v2", 64, 2226434, "features.2.conv.1.0.weight", "96x1x3x3",
                "features.18.1"},
        Shipped{"highway", 64, 3193666, "group3.7.t.bias", "128", "group3.7.gate"},
        Shipped{"dogs_vs_cats", 64, 2799762, "stem.conv2.weight", "32x16x3x3", "layer4.1.add"},
        Shipped{"quickstart", 32, 307794, "layer4.0.conv2.weight", "128x128x3x3", "layer4.0.add"},
        Shipped{"small_images", 32, 2795554, "conv1.weight", "32x3x3x3", "layer4.1.add"}),
    [](const auto& info) { return info.param.name; });

TEST(ShippedNetworkTest, EveryConfigIsInTheTable) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RT_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() == ".textproto") files.push_back(entry.path().stem().string());
  }
  EXPECT_THAT(files, testing::UnorderedElementsAre(
                         "lenet", "catdog_vgg", "alexnet", "vgg11_bn", "resnet18", "resnet50",
                         "mobilenet_v2", "highway", "dogs_vs_cats", "quickstart", "small_images"));
}

}  // namespace
}  // namespace ringtail
