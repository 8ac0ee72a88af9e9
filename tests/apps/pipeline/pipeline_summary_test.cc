// `summary --stages`: what it says of shipped networks, as people and as scripts read it.
#include "apps/pipeline/pipeline_summary.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dist/pipeline/draw_schedule.h"
#include "tests/apps/program.h"

namespace ringtail {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kVgg[] = "vgg11_bn";

ProcessResult Summary(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "summary");
  return RunDogsVsCats(std::move(arguments));
}

Json JsonOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ProcessResult result = Summary(std::move(arguments));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

TEST(ChooseMicroBatchesTest, IsWhatWasAskedElseTheConfigsElseAFewPerStage) {
  EXPECT_EQ(ChooseMicroBatches(8, 64, 1, 2).value(), 8);
  EXPECT_EQ(ChooseMicroBatches(8, 64, 4, 2).value(), 8);
  EXPECT_EQ(ChooseMicroBatches(0, 256, 4, 8).value(), 4);
  EXPECT_EQ(ChooseMicroBatches(0, 64, 1, 2).value(), 8);
  EXPECT_EQ(ChooseMicroBatches(0, 64, 1, 3).value(), 8);  // 12 does not divide 64
  EXPECT_EQ(ChooseMicroBatches(0, 3, 1, 4).value(), 3);
  EXPECT_THAT(ChooseMicroBatches(7, 64, 1, 2).status().message(),
              HasSubstr("--microbatches 7 does not divide the batch of 64 images; 4 or 8 would"));
  EXPECT_THAT(ChooseMicroBatches(65, 64, 1, 2).status().message(), HasSubstr("; 64 would"));
}

// Of every network in 2, 3 and 4 stages: stages are whole, in order, and add up.
TEST(PipelineSummaryTest, StagesOfShippedNetworksAddUp) {
  for (const char* name :
       {"alexnet", "catdog_vgg", "dogs_vs_cats", "highway", "lenet", "mobilenet_v2", "quickstart",
        "resnet18", "resnet50", "small_images", kVgg}) {
    for (const int stages : {2, 3, 4}) {
      SCOPED_TRACE(fmt::format("{} in {}", name, stages));
      const Json json = JsonOf({"--config", name, "--stages", std::to_string(stages)});
      const Json& pipeline = json["pipeline"];
      ASSERT_EQ(pipeline["stages"].size(), static_cast<size_t>(stages));
      double share = 0, bubble = 0;
      int64_t parameters = 0;
      for (const Json& stage : pipeline["stages"]) {
        share += stage["share"].get<double>();
        bubble += stage["bubble"].get<double>() / stages;
        parameters += stage["parameters"].get<int64_t>();
        EXPECT_GT(stage["flops_per_micro_batch"], 0);
        EXPECT_EQ(stage["memory_bytes"].get<int64_t>(),
                  stage["weight_bytes"].get<int64_t>() + stage["activation_bytes"].get<int64_t>() +
                      stage["message_bytes"].get<int64_t>());
      }
      EXPECT_NEAR(share, 1, 1e-9);
      EXPECT_EQ(parameters, json["parameters"]);
      EXPECT_NEAR(pipeline["bubble"], bubble, 1e-9);
      // No step is shorter than the way to a stage and back, and all that this computes. (Unequal
      // stages may wait less than equal ones: schedule_cost_test.)
      double before = 0;
      for (const Json& stage : pipeline["stages"]) {
        const double own = stage["flops_per_micro_batch"];
        const double work = pipeline["micro_batches"].get<double>() * own;
        EXPECT_GE(work / (1 - stage["bubble"].get<double>()), (before + work) * (1 - 1e-9));
        before += own;
      }
      EXPECT_EQ(pipeline["stages"].front()["first_layer"], json["layers"].front()["name"]);
      EXPECT_EQ(pipeline["stages"].back()["last_layer"], "loss");
      EXPECT_EQ(pipeline["stages"].back()["activation_bytes_sent"], 0);
      EXPECT_TRUE(pipeline["best_is_proven"]);
    }
  }
}

TEST(PipelineSummaryTest, ShowsTheCutInATable) {
  const ProcessResult result = Summary({"--config", kVgg, "--stages", "2", "--microbatches", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("2 stages, schedule 1f1b, 4 micro-batches of 16 images"),
                    HasSubstr("nothing is measured here"), HasSubstr("features.0 .. features."),
                    HasSubstr(" .. loss"), HasSubstr("memory: the largest rank has "),
                    HasSubstr(" MiB, without parts "), HasSubstr("balance: "),
                    HasSubstr("20.0 % if all stages were equal"), HasSubstr("the step waits for: "),
                    HasSubstr(DrawSchedule({PipelineKind::kOneForwardOneBackward, 2, 4}))));
}

// GPipe holds every micro-batch on every rank; 1F1B on the last one a single one.
TEST(PipelineSummaryTest, SchedulesDifferInMemoryAndNotInBubble) {
  const auto pipeline = [](const std::string& schedule) {
    return JsonOf({"--config", kVgg, "--stages", "2", "--microbatches", "8", "--schedule",
                   schedule})["pipeline"];
  };
  const Json gpipe = pipeline("gpipe"), one = pipeline("1f1b");
  EXPECT_EQ(gpipe["schedule"], "gpipe");
  EXPECT_EQ(gpipe["stages"][1]["micro_batches_alive"], 8);
  EXPECT_EQ(one["stages"][0]["micro_batches_alive"], 2);
  EXPECT_EQ(one["stages"][1]["micro_batches_alive"], 1);
  for (int s = 0; s < 2; ++s) {
    EXPECT_GT(gpipe["stages"][s]["activation_bytes"].get<int64_t>(),
              one["stages"][s]["activation_bytes"].get<int64_t>());
    EXPECT_EQ(gpipe["stages"][s]["weight_bytes"], one["stages"][s]["weight_bytes"]);
  }
  EXPECT_NEAR(gpipe["bubble"], one["bubble"], 1e-9);
  EXPECT_NE(gpipe["timetable"], one["timetable"]);
}

TEST(PipelineSummaryTest, TheBatchIsThatOfAStep) {
  const Json json =
      JsonOf({"--config", "lenet", "--stages", "2", "--microbatches", "4", "--batch", "32"});
  EXPECT_EQ(json["batch"], 8);
  EXPECT_EQ(json["pipeline"]["micro_batch_images"], 8);
  EXPECT_EQ(json["pipeline"]["stages"][0]["activation_bytes_sent"],
            json["pipeline"]["stages"][0]["gradient_bytes_received"]);
  // Half of the bytes with activations in bf16.
  const Json bf16 = JsonOf({"--config", "lenet", "--stages", "2", "--microbatches", "4", "--batch",
                            "32", "--precision", "bf16"});
  EXPECT_EQ(2 * bf16["pipeline"]["stages"][0]["activation_bytes_sent"].get<int64_t>(),
            json["pipeline"]["stages"][0]["activation_bytes_sent"].get<int64_t>());
}

TEST(PipelineSummaryTest, OneStageIsOneProcess) {
  const Json pipeline =
      JsonOf({"--config", "resnet18", "--stages", "1", "--microbatches", "4"})["pipeline"];
  EXPECT_EQ(pipeline["stages"][0]["memory_bytes"], pipeline["memory_bytes_of_one_process"]);
  EXPECT_GT(pipeline["memory_bytes_of_one_process_without_parts"].get<int64_t>(),
            pipeline["memory_bytes_of_one_process"].get<int64_t>());
  EXPECT_EQ(pipeline["bubble"], 0);
}

TEST(PipelineSummaryTest, SaysWhatIsWrong) {
  struct Case {
    std::vector<std::string> arguments;
    const char* said;
  };
  const std::vector<Case> cases = {
      {{"--stages", "0"}, "--stages"},
      {{"--config", "lenet", "--stages", "30"},
       "30 stages need 29 cuts, but the network can be cut 9 times only: after conv1, pool1"},
      {{"--stages", "2", "--microbatches", "7"},
       "--microbatches 7 does not divide the batch of 256 images; 4 or 8 would"},
      {{"--stages", "2", "--schedule", "zigzag"}, "zigzag"},
      {{"--microbatches", "4"}, "--stages"},
      {{"--schedule", "gpipe"}, "--stages"}};
  for (const Case& c : cases) {
    const ProcessResult result = Summary(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << c.said;
    EXPECT_THAT(result.err, HasSubstr(c.said));
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace ringtail
