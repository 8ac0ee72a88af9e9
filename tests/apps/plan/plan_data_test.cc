// The verb plan, with the images of a data set, and with the config of a run that was planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

// Steps are measured with the images of a run, whatever classes they have.
TEST(PlanDataTest, MeasuresBesideTheImagesOfItsData) {
  const TempDir folder;
  const auto path = [&](const std::string& name) { return folder.File(name); };
  std::ofstream(path("tiny.textproto")) << TinyConfigText();
  for (const char* const name : {"cat.0", "cat.1", "dog.0", "dog.1", "cat.2", "dog.2"}) {
    const std::string animal = std::string(name).ends_with('2') ? "fox" : std::string(name, 3);
    const std::filesystem::path animals = path("three") + "/" + animal;
    std::filesystem::create_directories(animals);
    std::filesystem::copy_file(TinyImages() + "/train/" + name + ".jpg",
                               animals / (std::string(name) + ".jpg"));
  }
  const std::vector<std::string> plan = {"plan",         "--measure",
                                         "--config",     path("tiny.textproto"),
                                         "--data",       path("three"),
                                         "--save",       path("measured"),
                                         "--hosts",      "2",
                                         "--part-batch", "2",
                                         "--set",        "data.split.validation_fraction=0"};
  const ProcessResult measured = RunDogsVsCats(plan);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.err, HasSubstr("fc: 3 outputs"));
  EXPECT_THAT(ReadFileText(path("measured"), 1 << 20).value(), HasSubstr("load_cpu_s"));
  std::vector<std::string> two_outputs = plan;
  two_outputs.insert(two_outputs.end(), {"--set", "net.layer[fc].linear.out_features=2"});
  const ProcessResult refused = RunDogsVsCats(two_outputs);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("classes"));
}

// Eight images, of which a plan has given four to each of two ranks: eight are planned anew.
TEST(PlanDataTest, TheConfigOfAPlannedRunIsPlannedAsItWasBefore) {
  const TempDir folder;
  const std::string config = folder.File("planned.textproto"), facts = folder.File("facts");
  std::ofstream(config) << TinyConfigText();
  const std::vector<std::string> of_config = {"--config", config, "--set", "train.batch=8"};
  std::vector<std::string> measure = {"plan", "--measure", "--save", facts, "--part-batch", "2"};
  measure.insert(measure.end(), of_config.begin(), of_config.end());
  const ProcessResult measured = RunDogsVsCats(measure);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const ProcessResult planned =
      RunDogsVsCats({"plan", "--from", facts, "--hosts", "1", "--config", config, "--set",
                     "train.batch=4", "--set", "dist.plan=AUTO", "--set",
                     R"(dist.planned={ rank: 0 rank: 1 world: 2 set: "train.batch=4" })"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("--set 'train.batch=8'"));
}

}  // namespace
}  // namespace ringtail
