// Weights of others: found by name, with prefixes, as timm calls them; a new head; and what does
// not fit is refused with names and shapes.
#include "apps/trainer/checkpoint/start_weights.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>

#include "apps/config/run_config.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/checkpoint/timm_names.h"
#include "core/storage/safetensors_writer.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr char kNet[] = R"(
net {
  layer { name: "conv1" convolution { out_channels: 4 kernel: 3 bias: false } }
  layer { name: "bn1" batch_norm {} }
  layer { name: "pool" global_average_pool {} }
  layer { name: "fc" linear { out_features: 2 } }
  layer { name: "loss" softmax_cross_entropy {} }
}
data { image_size: 8 })";

struct FileTensor {
  Shape shape;
  std::vector<float> values;
};
using FileTensors = std::map<std::string, FileTensor>;

FileTensor Filled(const Shape& shape, float first) {
  FileTensor tensor{.shape = shape, .values = std::vector<float>(NumElements(shape))};
  for (float& v : tensor.values) v = first += 0.25F;
  return tensor;
}

// What PyTorch would have of kNet with `classes` classes.
FileTensors StateDict(int64_t classes) {
  return {{"conv1.weight", Filled({4, 3, 3, 3}, 1)},
          {"bn1.weight", Filled({4}, 100)},
          {"bn1.bias", Filled({4}, 200)},
          {"bn1.running_mean", Filled({4}, 300)},
          {"bn1.running_var", Filled({4}, 400)},
          {"fc.weight", Filled({classes, 4}, 500)},
          {"fc.bias", Filled({classes}, 600)}};
}

class StartWeightsTest : public testing::Test {
 protected:
  std::string Write(const FileTensors& tensors, const std::string& prefix = "",
                    const std::map<std::string, std::string>& metadata = {}) const {
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors) {
      views.push_back(ViewF32(prefix + name, tensor.shape, tensor.values));
    }
    const std::string path = folder_.File("weights.safetensors");
    EXPECT_TRUE(WriteSafetensors(path, views, metadata).ok());
    return path;
  }

  StatusOr<std::string> Load(const std::string& path,
                             const std::vector<std::string>& classes = {"cat", "dog"}) {
    model_ = CreateModel(ParseRunConfig(kNet, "net", {}).value()).value();
    model_->Initialize(1);
    start_.assign(ValuesOf("fc.weight").begin(), ValuesOf("fc.weight").end());
    return LoadStartWeights(path, classes, model_.get());
  }
  std::string ErrorOf(const FileTensors& tensors) {
    return Load(Write(tensors)).status().message();
  }

  std::span<const float> ValuesOf(const std::string& name) const {
    const ParameterArena& arena = model_->arena();
    const Parameter* p = arena.FindParameter(name);
    return (p != nullptr ? p : arena.FindBuffer(name))->value();
  }
  void ExpectTaken(const FileTensors& tensors, const std::set<std::string>& but = {}) const {
    for (const auto& [name, tensor] : tensors) {
      if (but.contains(name)) continue;
      EXPECT_THAT(ValuesOf(name), testing::ElementsAreArray(tensor.values)) << name;
    }
  }

  const TempDir folder_;
  std::unique_ptr<Model> model_;
  std::vector<float> start_;  // of fc.weight
};

TEST_F(StartWeightsTest, EverythingIsTakenWhereEverythingFits) {
  const auto report = Load(Write(StateDict(2)));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report,
              HasSubstr("weights.safetensors: 7 of 7 tensors taken (0.00 of 0.00 M weights)"));
  ExpectTaken(StateDict(2));
}

TEST_F(StartWeightsTest, AHeadOfOtherClassesStartsAnew) {
  const auto report = Load(Write(StateDict(1000)));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("5 of 7 tensors taken"));
  EXPECT_THAT(*report, HasSubstr("new: fc.weight 2x4 (file: 1000x4), fc.bias 2 (file: 1000)"));
  ExpectTaken(StateDict(1000), {"fc.weight", "fc.bias"});
  EXPECT_THAT(ValuesOf("fc.weight"), testing::ElementsAreArray(start_));
}

TEST_F(StartWeightsTest, AHeadMayBeMissingOrHaveAnotherName) {
  FileTensors tensors = StateDict(10);
  tensors["classifier.weight"] = tensors.at("fc.weight");
  tensors["classifier.bias"] = tensors.at("fc.bias");
  tensors.erase("fc.weight");
  tensors.erase("fc.bias");
  auto report = Load(Write(tensors));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("new: fc.weight 2x4, fc.bias 2; left out: classifier.bias, "
                                 "classifier.weight"));
  tensors.erase("classifier.weight");
  tensors.erase("classifier.bias");
  report = Load(Write(tensors));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("new: fc.weight 2x4, fc.bias 2"));
}

TEST_F(StartWeightsTest, PrefixesAndCountersAreLeftOut) {
  FileTensors tensors = StateDict(2);
  tensors["bn1.num_batches_tracked"] = Filled({}, 7);
  const auto report = Load(Write(tensors, "module._orig_mod."));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("without the prefix module., without the prefix _orig_mod."));
  ExpectTaken(StateDict(2));
}

TEST_F(StartWeightsTest, WhatDoesNotFitIsNamedWithBothShapes) {
  FileTensors wide = StateDict(2), short_of_one = StateDict(2), larger = StateDict(2);
  wide["conv1.weight"] = Filled({8, 3, 3, 3}, 0);
  EXPECT_THAT(ErrorOf(wide), HasSubstr("'conv1.weight' (4x3x3x3) in the network is 8x3x3x3 in"));
  short_of_one.erase("bn1.running_var");
  short_of_one["bn1.variance"] = Filled({4}, 0);
  EXPECT_THAT(ErrorOf(short_of_one),
              HasSubstr("has no 'bn1.running_var' (4) of the network; it has 'bn1.variance' (4), "
                        "which the network has not"));
  larger["layer1.0.conv1.weight"] = Filled({4, 4, 3, 3}, 0);
  EXPECT_THAT(ErrorOf(larger), HasSubstr("has 'layer1.0.conv1.weight' (4x4x3x3), which the "
                                         "network has not: it is of a larger or another network"));
}

TEST_F(StartWeightsTest, ANotANumberIsRefused) {
  FileTensors tensors = StateDict(2);
  tensors["bn1.bias"].values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ErrorOf(tensors), HasSubstr("'bn1.bias' has a NaN or infinity"));
}

// Of Ringtail's own files: averages before weights, no optimizer; a head of the same classes alone.
TEST_F(StartWeightsTest, ACheckpointGivesItsAverages) {
  FileTensors tensors = StateDict(2);
  tensors["average.conv1.weight"] = Filled({4, 3, 3, 3}, -50);
  tensors["optimizer.momentum.fc.bias"] = Filled({2}, 9);
  const std::map<std::string, std::string> metadata = {{kConfigKey, kNet},
                                                       {"class_names", "cat\ndog"}};
  auto report = Load(Write(tensors, "", metadata));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("7 of 7 tensors taken"));
  EXPECT_EQ(ValuesOf("conv1.weight")[0], -49.75F);
  report = Load(Write(tensors, "", metadata), {"car", "dog"});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("new (its classes are others): fc.weight 2x4, fc.bias 2"));
}

// timm's names of a whole network, from the layers of its blocks, are torchvision's.
TEST(TimmNamesTest, MobileNetV2) {
  std::set<std::string> renamed;
  const auto add = [&](const std::string& layer, bool is_norm) {
    for (const char* what : {"weight", "bias", "running_mean", "running_var"}) {
      if (is_norm || what == std::string("weight")) {
        renamed.insert(TorchvisionNameOfTimmMobileNet(layer + "." + what));
      }
    }
  };
  add("conv_stem", false);
  add("bn1", true);
  add("conv_head", false);
  add("bn2", true);
  constexpr int kBlocks[] = {1, 2, 3, 4, 3, 3, 1};
  for (int stage = 0; stage < 7; ++stage) {
    for (int block = 0; block < kBlocks[stage]; ++block) {
      const std::string name = fmt::format("blocks.{}.{}.", stage, block);
      for (const char* layer : {"conv_dw", "conv_pw"}) add(name + layer, false);
      for (const char* layer : {"bn1", "bn2"}) add(name + layer, true);
      if (stage == 0) continue;
      add(name + "conv_pwl", false);
      add(name + "bn3", true);
    }
  }
  renamed.insert(TorchvisionNameOfTimmMobileNet("classifier.weight"));
  renamed.insert(TorchvisionNameOfTimmMobileNet("classifier.bias"));
  const auto model = CreateModel(LoadRunConfig("mobilenet_v2", {}).value()).value();
  std::set<std::string> names;
  for (const auto list : {model->arena().parameters(), model->arena().buffers()}) {
    for (const Parameter& p : list) names.insert(p.spec.name);
  }
  EXPECT_EQ(renamed, names);
}

TEST(TimmNamesTest, TheOrderInABlockIsThatOfItsLayers) {
  const auto name = TorchvisionNameOfTimmMobileNet;
  EXPECT_EQ(name("blocks.0.0.conv_dw.weight"), "features.1.conv.0.0.weight");
  EXPECT_EQ(name("blocks.0.0.conv_pw.weight"), "features.1.conv.1.weight");
  EXPECT_EQ(name("blocks.2.1.conv_pw.weight"), "features.5.conv.0.0.weight");
  EXPECT_EQ(name("blocks.2.1.conv_dw.weight"), "features.5.conv.1.0.weight");
  EXPECT_EQ(name("blocks.6.0.conv_pwl.weight"), "features.17.conv.2.weight");
  EXPECT_EQ(name("blocks.6.0.bn3.bias"), "features.17.conv.3.bias");
  EXPECT_EQ(name("blocks.7.0.bn3.bias"), "blocks.7.0.bn3.bias");
  EXPECT_EQ(name("blocks.x"), "blocks.x");
}

// Where timm has convolutions over what torchvision flattens.
TEST(TimmNamesTest, VggIsFlattened) {
  EXPECT_EQ(TorchvisionNameOfTimmVgg("features.0.weight"), "features.0.weight");
  constexpr char kVgg[] = R"(
net {
  layer { name: "features.0" convolution { out_channels: 2 kernel: 3 padding: 1 } }
  layer { name: "flatten" flatten {} }
  layer { name: "classifier.0" linear { out_features: 3 } }
  layer { name: "classifier.3" linear { out_features: 3 } }
  layer { name: "classifier.6" linear { out_features: 2 } }
  layer { name: "loss" softmax_cross_entropy {} }
}
data { image_size: 8 })";
  const FileTensors tensors = {{"features.0.weight", Filled({2, 3, 3, 3}, 1)},
                               {"features.0.bias", Filled({2}, 2)},
                               {"pre_logits.fc1.weight", Filled({3, 2, 8, 8}, 3)},
                               {"pre_logits.fc1.bias", Filled({3}, 4)},
                               {"pre_logits.fc2.weight", Filled({3, 3, 1, 1}, 5)},
                               {"pre_logits.fc2.bias", Filled({3}, 6)},
                               {"head.fc.weight", Filled({2, 3}, 7)},
                               {"head.fc.bias", Filled({2}, 8)}};
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    views.push_back(ViewF32(name, tensor.shape, tensor.values));
  }
  const TempDir folder;
  ASSERT_TRUE(WriteSafetensors(folder.File("w"), views, {}).ok());
  const auto model = CreateModel(ParseRunConfig(kVgg, "vgg", {}).value()).value();
  const auto report = LoadStartWeights(folder.File("w"), {}, model.get());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(*report, HasSubstr("8 of 8 tensors taken"));
  EXPECT_THAT(*report, HasSubstr("renamed from timm's"));
  EXPECT_THAT(model->arena().FindParameter("classifier.0.weight")->value(),
              testing::ElementsAreArray(tensors.at("pre_logits.fc1.weight").values));
}

}  // namespace
}  // namespace ringtail
