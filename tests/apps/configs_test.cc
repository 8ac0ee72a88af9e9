#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/config/run_config.h"
#include "apps/config/shipped_configs.h"
#include "core/storage/file.h"
#include "optim/batch_scaling.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kConfigs[] = RT_SOURCE_DIR "/configs";

std::vector<std::string> ConfigNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().extension() == ".textproto") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ConfigTest : public testing::TestWithParam<std::string> {};

TEST_P(ConfigTest, LoadsAndBuilds) {
  const auto loaded = LoadRunConfig(std::string(kConfigs) + "/" + GetParam() + ".textproto", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->config.net().name(), GetParam());
  const auto model = CreateModel(*loaded);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ((*model)->num_classes(), 2);
  EXPECT_GT((*model)->arena().num_parameters(), 0);
}

TEST_P(ConfigTest, PrintsAsWhatItIs) {
  const std::string path = std::string(kConfigs) + "/" + GetParam() + ".textproto";
  const LoadedConfig loaded = LoadRunConfig(path, {}).value();
  const std::string printed = PrintTextConfig(loaded.config);
  const LoadedConfig again = ParseRunConfig(printed, "printed", {}).value();
  EXPECT_EQ(PrintTextConfig(again.config), printed);
}

// Another train.batch is then known to be another.
TEST_P(ConfigTest, StatesTheBatchThatItsRateIsFor) {
  const RunConfig config = LoadRunConfig(GetParam(), {}).value().config;
  EXPECT_EQ(config.optim().batch_scaling().reference_batch(), config.train().batch());
}

INSTANTIATE_TEST_SUITE_P(Configs, ConfigTest, testing::ValuesIn(ConfigNames()),
                         [](const auto& name) { return name.param; });

ScaledOptim ScaledDefault(const std::string& set, int64_t ranks) {
  const std::vector<std::string> sets = {set};
  const RunConfig config = LoadRunConfig(std::string(kDefaultConfig), sets).value().config;
  const int64_t batch = config.train().batch();
  return ScaleToBatch(config.optim(),
                      {.rank = batch, .global = ranks * batch, .steps_per_epoch = 50});
}

TEST(ConfigsTest, AnotherBatchHasAnotherRate) {
  const ScaledOptim untouched = ScaledDefault("train.batch=256", 1);
  EXPECT_EQ(untouched.config.learning_rate(), 1.2);
  EXPECT_EQ(untouched.config.ema_decay(), 0.995);
  EXPECT_EQ(untouched.summary, "");
  const ScaledOptim small = ScaledDefault("train.batch=64", 1);
  EXPECT_DOUBLE_EQ(small.config.learning_rate(), 0.6);
  EXPECT_THAT(small.summary,
              HasSubstr("learning rate 1.2 at batch 256 -> 0.6 at batch 64 (square root)"));
  EXPECT_DOUBLE_EQ(ScaledDefault("train.batch=256", 4).config.learning_rate(), 2.4);
  EXPECT_EQ(ScaledDefault("train.batch=64", 4).config.learning_rate(), 1.2) << "as on one rank";
}

TEST(ConfigsTest, AllThatTheReadmeNamesExist) {
  const std::vector<std::string> names = ConfigNames();
  for (const char* name :
       {"lenet", "catdog_vgg", "alexnet", "vgg11_bn", "resnet18", "resnet50", "mobilenet_v2",
        "highway", "dogs_vs_cats", "quickstart", "small_images"}) {
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
  }
}

TEST(ConfigsTest, TheProgramHasAllOfThemAsTheyAre) {
  constexpr int64_t kMaxBytes = 1 << 20;
  EXPECT_EQ(ShippedConfigNames(), ConfigNames());
  for (const ShippedConfig& config : ShippedConfigs()) {
    const std::string path = fmt::format("{}/{}.textproto", kConfigs, config.name);
    EXPECT_EQ(config.text, ReadFileText(path, kMaxBytes).value()) << path;
  }
}

TEST(ConfigsTest, AWordIsAShippedConfigOrAFile) {
  const TempDir folder;
  const std::string file = folder.File("mine.textproto");
  std::ofstream(file) << FindShippedConfig("lenet")->text;
  EXPECT_EQ(LoadRunConfig("resnet18", {}).value().config.net().name(), "resnet18");
  EXPECT_EQ(LoadRunConfig("", {}).value().config.net().name(), kDefaultConfig);
  EXPECT_EQ(LoadRunConfig(file, {}).value().config.net().name(), "lenet");
  const auto said = [](const std::string& word) {
    return LoadRunConfig(word, {}).status().message();
  };
  EXPECT_THAT(said("resnet81"), HasSubstr("did you mean 'resnet18'?"));
  EXPECT_THAT(said("nothing"), HasSubstr("alexnet, catdog_vgg"));
  EXPECT_THAT(said("configs/resnet50.textproto"),
              HasSubstr("there is no file 'configs/resnet50.textproto'; --config resnet50"));
  EXPECT_THAT(said(folder.File("other.textproto")), Not(HasSubstr("--config")));
}

}  // namespace
}  // namespace ringtail
