// plan --slowness: hosts of unequal speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

// Of hosts that compute, 1 ms an image, and send nearly nothing.
ProcessResult Plan(const std::vector<std::string>& flags) {
  const TempDir folder;
  std::ofstream(folder.File("tiny.textproto")) << TinyConfigText();
  std::ofstream(folder.File("facts.textproto")) << R"(
      cores: 1  update_s: 0  merge_s: 0
      parameter { name: "w" dimension: 1 kind: VECTOR }
      step { batch: 100 forward_s: 0.04 backward_s: 0.06 finish_s: 0.06 }
      cluster { hosts: 4 between_hosts { latency_s: 1e-6 seconds_per_byte: 1e-9 } })";
  std::vector<std::string> arguments = {"plan",
                                        "--config",
                                        folder.File("tiny.textproto"),
                                        "--from",
                                        folder.File("facts.textproto"),
                                        "--batch",
                                        "400"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return RunDogsVsCats(arguments);
}

TEST(UnequalHostsTest, ImagesAreDividedWhereASlowHostHelps) {
  const ProcessResult told = Plan({"--slowness", "1,1,2,1"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out,
              HasSubstr("recommended: 4 hosts, dense, every step, images divided by speed"));
  EXPECT_THAT(told.out, HasSubstr("of these unequal hosts 0, 1, 2, 3 would train: 4 hosts"));
  EXPECT_THAT(told.out, HasSubstr("predicted 3.4 times one host, with even shares 3"));
  EXPECT_THAT(told.out, HasSubstr("--local-batch auto"));
  const ProcessResult json = Plan({"--slowness", "1,1,20,1", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["training_hosts"], std::vector<int>({0, 1, 3}));
  EXPECT_FALSE(answer["recommended"]["by_speed"]);
  EXPECT_FALSE(nlohmann::json::parse(Plan({"--json"}).out).contains("training_hosts"));
}

TEST(UnequalHostsTest, WantsANumberForEachHost) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--slowness", "1,2"}, "--slowness has 2 numbers; give one for each of 4 hosts"},
      {{"--hosts", "3", "--slowness", "1,1,2,1"}, "for each of 3 hosts"},
      {{"--hosts", "2..4", "--slowness", "1,1,2,1"}, "a single number of --hosts"},
      {{"--slowness", "2,1,1,1"}, "--slowness begins with 1"},
      {{"--slowness", "1,1,0,1"}, "--slowness"},
      {{"--slowness", "1,1,fast,1"}, "--slowness"},
      {{"--slowness", "1,1,2,1", "--dedicated-cores"}, "--dedicated-cores"}};
  for (const auto& [flags, said] : wrong) {
    const ProcessResult result = Plan(flags);
    EXPECT_EQ(result.exit_code, 2) << said;
    EXPECT_THAT(result.err, HasSubstr(said));
  }
}

}  // namespace
}  // namespace ringtail
