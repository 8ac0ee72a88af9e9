#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "apps/config/default_config.h"
#include "apps/config/run_config.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Configs, ConfigTest, testing::ValuesIn(ConfigNames()),
                         [](const auto& name) { return name.param; });

TEST(ConfigsTest, AllThatTheReadmeNamesExist) {
  const std::vector<std::string> names = ConfigNames();
  for (const char* name : {"lenet", "catdog_vgg", "alexnet", "vgg11_bn", "resnet18", "resnet50",
                           "mobilenet_v2", "highway", "dogs_vs_cats", "quickstart"}) {
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
  }
}

TEST(ConfigsTest, TheBuiltInConfigIsDogsVsCats) {
  constexpr int64_t kMaxBytes = 1 << 20;
  const std::string file =
      ReadFileText(std::string(kConfigs) + "/dogs_vs_cats.textproto", kMaxBytes).value();
  EXPECT_EQ(DefaultConfigText(), file);
}

}  // namespace
}  // namespace ringtail
