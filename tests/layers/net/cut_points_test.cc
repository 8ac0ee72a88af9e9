// Where networks may be cut: exactly one blob crosses, on small graphs and on all shipped networks.
#include "layers/net/cut_points.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "core/config/text_config.h"
#include "layers/net/graph.h"
#include "layers/net/net_memory.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kBatch = 4;

struct Planned {
  std::unique_ptr<Model> model;
  std::unique_ptr<Net> net;
};

Planned Plan(const NetConfig& config, int64_t image_size, BlobType type = BlobType::kF32,
             const std::vector<std::string>& frozen = {}) {
  Planned planned;
  planned.model = Model::Create(config, image_size, nullptr, "net", /*allocate=*/false,
                                {.layers = frozen, .field = "freeze"})
                      .value();
  planned.model->set_blob_type(type);
  planned.net = Net::Create(planned.model.get(),
                            {.batch = kBatch, .image_size = image_size, .plan_only = true})
                    .value();
  return planned;
}

NetConfig Parse(const std::string& text) {
  NetConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

RunConfig ReadConfig(const std::string& name) {
  RunConfig config;
  const Status status = ReadTextConfig(
      std::string(RT_SOURCE_DIR) + "/configs/" + name + ".textproto", &config, nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return config;
}

std::vector<std::string> NamesOf(const Planned& planned, bool with_parted_batch_norms) {
  std::vector<std::string> names;
  for (const CutPoint& point : FindCutPoints(*planned.model, *planned.net)) {
    if (point.parts_batch_norm && !with_parted_batch_norms) continue;
    names.push_back(planned.model->graph().nodes()[point.node].name);
  }
  return names;
}

TEST(CutPointsTest, AChainMayBeCutEverywhereButAfterItsLoss) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "conv" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "relu" relu {} }
    layer { name: "pool" max_pool { kernel: 2 } }
    layer { name: "fc"   linear { out_features: 2 } }
    layer { name: "loss" softmax_cross_entropy {} })"),
                               8);
  EXPECT_THAT(NamesOf(planned, true), ElementsAre("conv", "pool", "fc"));  // the ReLU is fused
}

TEST(CutPointsTest, TwoBlobsCrossInsideABranch) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "conv2" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "conv3" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "add"   input: "conv3" input: "conv1" add {} }
    layer { name: "pool"  global_average_pool {} }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })"),
                               8);
  EXPECT_THAT(NamesOf(planned, true), ElementsAre("conv1", "add", "pool", "fc"));
}

TEST(CutPointsTest, ImagesThatAreReadAgainCrossToo) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "conv2" input: "images" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "add"   input: "conv2" input: "conv1" add {} }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })"),
                               8);
  EXPECT_THAT(NamesOf(planned, true), ElementsAre("add", "fc"));
}

TEST(CutPointsTest, ALossAloneCannotBeCut) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "loss"  softmax_cross_entropy {} })"),
                               1);
  EXPECT_THAT(NamesOf(planned, true), IsEmpty());
}

// Before and after one that its neighbour alone reads; not where a blob has two readers.
TEST(CutPointsTest, ABatchNormIsNotPartedFromItsNeighbours) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "bn1"   batch_norm {} }
    layer { name: "relu1" relu {} }
    layer { name: "conv2" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "bn2"   batch_norm {} }
    layer { name: "conv3" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "add"   input: "conv3" input: "bn2" add {} }
    layer { name: "pool"  global_average_pool {} }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })"),
                               8);
  EXPECT_THAT(NamesOf(planned, true),
              ElementsAre("conv1", "bn1", "conv2", "bn2", "add", "pool", "fc"));
  EXPECT_THAT(NamesOf(planned, false), ElementsAre("bn2", "add", "pool", "fc"));
}

TEST(CutPointsTest, BytesAreThoseOfTheShapeWithoutPadding) {
  const std::string text = R"(
    layer { name: "conv1" convolution { out_channels: 5 kernel: 3 padding: 1 } }
    layer { name: "conv2" convolution { out_channels: 5 kernel: 3 padding: 1 } }
    layer { name: "fc"    linear { out_features: 3 } }
    layer { name: "loss"  softmax_cross_entropy {} })";
  for (const BlobType type : {BlobType::kF32, BlobType::kBf16}) {
    const Planned planned = Plan(Parse(text), 8, type);
    const auto points = FindCutPoints(*planned.model, *planned.net);
    ASSERT_EQ(points.size(), 3U);
    EXPECT_EQ(points[0].bytes(), kBatch * 5 * 8 * 8 * BytesPerElement(type));
    EXPECT_EQ(points[0].blob.type, type);
    EXPECT_EQ(points[2].bytes(), kBatch * 3 * 4);  // logits are f32
  }
}

TEST(CutPointsTest, WhatDoesNotTrainGetsNoGradient) {
  const std::string text = R"(
    layer { name: "pool"  max_pool { kernel: 2 } }
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "conv2" convolution { out_channels: 8 kernel: 3 padding: 1 } }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })";
  const auto gradients = [&](const std::vector<std::string>& frozen) {
    const Planned planned = Plan(Parse(text), 8, BlobType::kF32, frozen);
    std::vector<bool> has;
    for (const CutPoint& point : FindCutPoints(*planned.model, *planned.net)) {
      has.push_back(point.has_gradient);
    }
    return has;
  };
  EXPECT_THAT(gradients({}), ElementsAre(false, true, true, true));
  EXPECT_THAT(gradients({"conv1"}), ElementsAre(false, false, true, true));
}

TEST(NetSegmentTest, ItsBytesAreThoseOfItsLayers) {
  const Planned planned = Plan(Parse(R"(
    layer { name: "conv1" convolution { out_channels: 8 kernel: 3 padding: 1 bias: false } }
    layer { name: "bn1"   batch_norm {} }
    layer { name: "pool"  max_pool { kernel: 2 } }
    layer { name: "fc"    linear { out_features: 2 } }
    layer { name: "loss"  softmax_cross_entropy {} })"),
                               8);
  const NetSegment first = DescribeSegment(*planned.model, *planned.net, 0, 2);
  EXPECT_EQ(first.trained_bytes, 4 * (8 * 3 * 3 * 3 + 2 * 8));
  EXPECT_EQ(first.fixed_bytes, 4 * 2 * 8);              // running mean and variance
  EXPECT_GE(first.kept_bytes, kBatch * 8 * 8 * 8 * 4);  // what the batch norm reads again
  const NetSegment second = DescribeSegment(*planned.model, *planned.net, 3, 4);
  EXPECT_EQ(second.trained_bytes, 4 * (2 * 8 * 4 * 4 + 2));
  EXPECT_EQ(second.fixed_bytes, 0);
}

// Every blob that is read after a node but made before or by it, counted without the library.
TEST(CutPointsTest, OfShippedNetworksAgreeWithCountingWhatCrosses) {
  int networks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RT_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".textproto") continue;
    ++networks;
    const RunConfig config = ReadConfig(entry.path().stem().string());
    const Planned planned = Plan(config.net(), config.data().image_size());
    const Graph& graph = planned.model->graph();
    std::vector<int> expected;
    for (int cut = 0; cut + 1 < graph.size(); ++cut) {
      std::set<int> crossing;
      for (int i = cut + 1; i < graph.size(); ++i) {
        for (const int input : graph.nodes()[i].inputs) {
          if (input <= cut) crossing.insert(input);
        }
      }
      if (crossing.size() == 1) {
        EXPECT_THAT(crossing, ElementsAre(cut));
        expected.push_back(cut);
      }
    }
    EXPECT_EQ(NodesToCutAfter(graph), expected) << entry.path();
    // Where no batch norm is parted, neighbours share no work in the plan of the whole net.
    for (const CutPoint& point : FindCutPoints(*planned.model, *planned.net)) {
      if (point.parts_batch_norm) continue;
      const FusionPlan& fusion = planned.net->needs()[point.node].plan.fusion;
      EXPECT_EQ(fusion.dst_moments_pixels, 0) << graph.nodes()[point.node].name;
      EXPECT_FALSE(fusion.backward_takes_map) << graph.nodes()[point.node].name;
      EXPECT_FALSE(fusion.dst_is_affine && graph.nodes()[point.node].uses == 1)
          << graph.nodes()[point.node].name;
    }
  }
  EXPECT_EQ(networks, 11);
}

// "layer1.0.add", ...: the blocks of a network's stages.
std::vector<std::string> Blocks(std::vector<std::string> before, const std::vector<int>& blocks) {
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      before.push_back("layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".add");
    }
  }
  before.insert(before.end(), {"avgpool", "fc"});
  return before;
}

std::vector<std::string> HighwayCuts() {
  std::vector<std::string> names;
  const char* const before[] = {"stem", "down1", "down2"};
  for (int group = 0; group < 3; ++group) {
    names.emplace_back(before[group]);
    for (int i = 0; i < 8; ++i) {
      names.push_back("group" + std::to_string(group + 1) + "." + std::to_string(i) + ".gate");
    }
  }
  names.insert(names.end(), {"avgpool", "fc"});
  return names;
}

// Each can be cut into four stages at least. (A ReLU belongs to the layer before it.)
TEST(CutPointsTest, OfShippedNetworks) {
  const std::map<std::string, std::vector<std::string>> expected = {
      {"lenet", {"conv1", "pool1", "conv2", "pool2", "conv3", "pool3", "flatten", "fc1", "fc2"}},
      {"catdog_vgg",
       {"conv1", "pool1", "conv2", "pool2", "conv3", "pool3", "conv4", "pool4", "flatten", "fc1",
        "fc2"}},
      {"alexnet",
       {"features.0", "features.2", "features.3", "features.5", "features.6", "features.8",
        "features.10", "features.12", "avgpool", "flatten", "classifier.0", "classifier.1",
        "classifier.3", "classifier.4", "classifier.6"}},
      {"vgg11_bn",
       {"features.3", "features.7", "features.14", "features.21", "features.28", "avgpool",
        "flatten", "classifier.0", "classifier.2", "classifier.3", "classifier.5", "classifier.6"}},
      {"resnet18", Blocks({"maxpool"}, {2, 2, 2, 2})},
      {"resnet50", Blocks({"maxpool"}, {3, 4, 6, 3})},
      {"dogs_vs_cats", Blocks({"maxpool"}, {2, 2, 2, 2})},
      {"quickstart", Blocks({"bn1"}, {1, 1, 1, 1})},  // read by the first block's two branches
      {"small_images", Blocks({"bn1"}, {2, 2, 2, 2})},
      {"mobilenet_v2",
       {"features.2.conv.3", "features.3.conv.add", "features.4.conv.3", "features.5.conv.add",
        "features.6.conv.add", "features.7.conv.3", "features.8.conv.add", "features.9.conv.add",
        "features.10.conv.add", "features.11.conv.3", "features.12.conv.add",
        "features.13.conv.add", "features.14.conv.3", "features.15.conv.add",
        "features.16.conv.add", "avgpool", "classifier.0", "classifier.1"}},
      {"highway", HighwayCuts()}};
  for (const auto& [name, cuts] : expected) {
    const RunConfig config = ReadConfig(name);
    const Planned planned = Plan(config.net(), config.data().image_size());
    EXPECT_EQ(NamesOf(planned, false), cuts) << name;
    EXPECT_GE(cuts.size(), 3U);
  }
}

}  // namespace
}  // namespace ringtail
