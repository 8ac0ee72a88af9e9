#include "apps/emulator/rules/synchronous_rule.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/collectives/algorithms.h"
#include "dist/collectives/plan_cost.h"
#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const std::string kFixed = "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 } ";

double StepEnd(const EmulationResult& result, int64_t step) {
  for (const nlohmann::json& line : LinesOf(result, "step")) {
    if (line["step"] == step) return line["virtual_s"];
  }
  return -1;
}

TEST(SynchronousRuleTest, TheSameBytesWhateverTheLoadersThreads) {
  const std::string script =
      "workers: 4 compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 jitter: 0.3 } "
      "slow { worker: 1 factor: 3 from_s: 0.05 }";
  const EmulationResult one = EmulateTiny(script, {"data.workers=1"}).value();
  const EmulationResult three = EmulateTiny(script, {"data.workers=3"}).value();
  EXPECT_EQ(one.lines, three.lines);
  EXPECT_EQ(one.weights, three.weights);
  EXPECT_EQ(SummaryJson(one.summary), SummaryJson(three.summary));
  EXPECT_GT(one.summary.virtual_s, 0);
}

TEST(SynchronousRuleTest, OneWorkerHasTheBitsOfATrainer) {
  const std::vector<std::string> overrides = {"train.batch=8"};
  EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", overrides)->weights, TrainedWeights(overrides));
}

TEST(SynchronousRuleTest, OneWorkerHasTheBitsOfATrainerWhoseBatchGrows) {
  const std::vector<std::string> overrides = {"train.batch=8", "train.accumulation=2",
                                              "optim.cosine={}", "optim.adamw={}",
                                              "optim.batch_growth.max_batch=24"};
  EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", overrides)->weights, TrainedWeights(overrides));
}

// The momentum of dgc is in what a rank alone keeps, too.
TEST(SynchronousRuleTest, OneWorkerHasTheBitsOfATrainerWhoseCompressionKeepsTheMomentum) {
  const std::vector<std::string> overrides = {
      "train.batch=8", "optim.sgd.momentum=0", "optim.sgd.nesterov=false",
      "dist.compression.scheme.dgc.momentum=0.9", "dist.compression.min_elements=100"};
  EXPECT_EQ(EmulateTiny(kFixed + "workers: 1", overrides)->weights, TrainedWeights(overrides));
}

// Of those that are left, one that is alone codes nothing, and one that joins it has what it keeps.
TEST(SynchronousRuleTest, WorkersWhoseCompressionKeepsTheMomentumDieAndJoin) {
  const std::vector<std::string> overrides = {"optim.sgd.momentum=0", "optim.sgd.nesterov=false",
                                              "dist.compression.scheme.dgc.momentum=0.9",
                                              "dist.compression.min_elements=100",
                                              "dist.compression.fall_back=false"};
  const auto result = EmulateTiny(kFixed +
                                      "workers: 2 kill { worker: 0 at_s: 0.05 } join { at_s: 0.2 } "
                                      "kill { worker: 1 at_s: 0.25 }",
                                  overrides);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->summary.steps, 4 * kTinyStepsPerEpoch);
  EXPECT_LT(LinesOf(*result, "evaluation").back()["loss"], 2);
}

// Whatever the workers do together: an exchange would never end.
TEST(SynchronousRuleTest, MoreThanAHundredYearsAreAnError) {
  const std::vector<std::string> worlds[] = {
      {}, {"dist.local.period=3"}, {"dist.asynchronous.rule=ASYNCHRONOUS"}};
  for (const char* link : {"mbit_per_s: 1e-12", "mbit_per_s: 1e-300 add_gb_per_s: 1e-300"}) {
    for (const std::vector<std::string>& world : worlds) {
      const Status status =
          EmulateTiny(kFixed + fmt::format("workers: 2 between_hosts {{ {} }}", link), world)
              .status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << link;
      EXPECT_THAT(status.message(), HasSubstr("more than 100 years")) << link;
    }
  }
}

// A step would take longer than that if the worker did not become fast again, after 1e9 s.
TEST(SynchronousRuleTest, SlowForLessThanAHundredYearsIsNoError) {
  const std::string slow = "slow { worker: 1 factor: 1000 } ";
  const EmulationResult result =
      EmulateTiny("workers: 2 compute { fixed_ms: 1e9 } " + slow + slow).value();
  EXPECT_GT(result.summary.virtual_s, 1e9);
  EXPECT_LT(result.summary.virtual_s, 1.1e9);
}

// Without batch norm the division of a batch changes rounding only.
TEST(SynchronousRuleTest, ManyWorkersTrainAsOne) {
  const std::vector<std::string> overrides = {"net.layer[bn1].relu={}"};
  const EmulationResult one = EmulateTiny(kFixed + "workers: 1", overrides).value();
  for (const char* workers : {"workers: 2", "workers: 4", "workers: 8"}) {
    const EmulationResult many = EmulateTiny(kFixed + workers, overrides).value();
    EXPECT_LT(LargestDifference(one.weights, many.weights), 1e-4) << workers;
    EXPECT_EQ(one.summary.images, many.summary.images);
  }
}

// All that a step exchanges, priced by dist's clock.
TEST(SynchronousRuleTest, WithoutComputeAStepTakesWhatItsPlansCost) {
  const std::string script = "workers: 4 compute {} between_hosts { mbit_per_s: 10 }";
  const EmulationResult result = EmulateTiny(script, {"train.epochs=0.2"}).value();
  const LoadedConfig loaded = TinyConfig({"train.batch=2"});
  TrainingWorld alone;
  const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
  const auto job = EmulatedJob::Create(&loaded, &data, TinyScript(script)).value();
  const std::vector<int> workers = job->FirstWorkers();
  Plans chain(workers.size());
  std::vector<ExchangeItem> items = *job->ItemsOf(workers).value();
  items.push_back(RollCallItem(workers, *job->network()));
  for (const ExchangeItem& item : items) {
    for (size_t rank = 0; rank < chain.size(); ++rank) chain[rank].Append((*item.plans)[rank]);
  }
  const double cost = CostOfPlans(chain, Topology::Blocks(4, 1), NetworkOf(job->script())).seconds;
  EXPECT_NEAR(StepEnd(result, 1), cost, 1e-4 * cost);
}

// On a network that costs nothing: forward, backward and update.
const std::string kFreeWire =
    "between_hosts { mbit_per_s: 1e9 latency_us: 0 } within_host { latency_us: 0 } ";

TEST(SynchronousRuleTest, AStepIsAsSlowAsItsSlowestWorker) {
  const std::string script = kFixed + kFreeWire + "workers: 4 ";
  const EmulationResult even = EmulateTiny(script, {"train.epochs=0.2"}).value();
  EXPECT_NEAR(StepEnd(even, 1), 0.004 + 2 * 0.001 + 0.002, 1e-5);
  const EmulationResult slow =
      EmulateTiny(script + "slow { worker: 2 factor: 5 }", {"train.epochs=0.2"}).value();
  EXPECT_NEAR(StepEnd(slow, 1), 5 * StepEnd(even, 1), 5e-5);
  for (const nlohmann::json& line : LinesOf(slow, "step")) {
    EXPECT_NEAR(line["blocked_ms"], line["worker"] == 2 ? 0 : 4 * 8, 0.05) << line;
  }
}

TEST(SynchronousRuleTest, BackwardHidesAnExchangeThatIsShorter) {
  const EmulationResult free =
      EmulateTiny("workers: 2 compute { fixed_ms: 1000 } " + kFreeWire, {"train.epochs=0.2"})
          .value();
  const EmulationResult wire = EmulateTiny("workers: 2 compute { fixed_ms: 1000 }",
                                           {"train.epochs=0.2", "dist.end_bucket_kib=1"})
                                   .value();
  EXPECT_LT(StepEnd(wire, 1) - StepEnd(free, 1), 0.001);
  EXPECT_GT(StepEnd(wire, 1), StepEnd(free, 1));
}

// On a slow wire the update is prepared of what has arrived, while the last bucket travels: it ends
// sooner by at most prepare_ms. Weights are the same.
TEST(SynchronousRuleTest, PreparationFillsTheWait) {
  const std::string script = "workers: 2 between_hosts { mbit_per_s: 1 } ";
  const std::vector<std::string> muon = {"optim.muon={}", "optim.clip_norm=0",
                                         "dist.end_bucket_kib=1", "train.epochs=0.2"};
  const auto step = [&](const std::string& compute, std::vector<std::string> more = {}) {
    more.insert(more.begin(), muon.begin(), muon.end());
    return EmulateTiny(script + "compute { fixed_ms: 4 " + compute + " } ", more).value();
  };
  const EmulationResult whole = step("update_ms: 4"), prepared = step("update_ms: 4 prepare_ms: 3");
  const double sooner = StepEnd(whole, 1) - StepEnd(prepared, 1);
  EXPECT_GT(sooner, 0.002);
  EXPECT_LT(sooner, 0.003);  // conv1 is in the last bucket
  EXPECT_EQ(whole.weights, prepared.weights);
  const nlohmann::json before = LinesOf(whole, "step")[0], after = LinesOf(prepared, "step")[0];
  EXPECT_NEAR(after["compute_ms"], before["compute_ms"].get<double>(), 1e-3);
  EXPECT_NEAR(before["blocked_ms"].get<double>() - after["blocked_ms"].get<double>(), 1e3 * sooner,
              1e-3);
  // With clipping, or alone, nothing is prepared.
  EXPECT_EQ(StepEnd(step("update_ms: 4 prepare_ms: 3", {"optim.clip_norm=1"}), 1),
            StepEnd(step("update_ms: 4", {"optim.clip_norm=1"}), 1));
}

// An update that takes longer than the roll call hides it; one that takes no time, nothing.
TEST(SynchronousRuleTest, TheRollCallTravelsBesideTheUpdate) {
  const auto step = [](const std::string& update_ms) {
    return StepEnd(
        EmulateTiny("workers: 4 between_hosts { latency_us: 5000 } compute { fixed_ms: 4 " +
                        update_ms + " }",
                    {"train.epochs=0.2"})
            .value(),
        1);
  };
  const double none = step(""), within = step("update_ms: 9"), beyond = step("update_ms: 100");
  EXPECT_NEAR(within, none, 1e-6);  // two rounds of 5 ms
  EXPECT_NEAR(beyond, none + 0.1 - 0.01, 2e-4);
}

TEST(SynchronousRuleTest, AWorkerThatDiesInItsUpdateIsMissedFirst) {
  const EmulationResult death = EmulateTiny(
                                    "compute { fixed_ms: 4 update_ms: 100 } workers: 4 "
                                    "kill { worker: 1 at_s: 0.05 noticed_after_s: 0.5 }")
                                    .value();
  const std::vector<nlohmann::json> steps = LinesOf(death, "step");
  ASSERT_EQ(steps.size(), 3 * static_cast<size_t>(death.summary.steps));
  EXPECT_GT(steps[0]["virtual_s"], 0.55);
  for (const nlohmann::json& line : steps) EXPECT_NE(line["worker"], 1) << line;
}

TEST(SynchronousRuleTest, AWorkerThatDiesHoldsTheOthersUpUntilItIsMissed) {
  const std::string script = kFixed + "workers: 4 ";
  const EmulationResult whole = EmulateTiny(script).value();
  const EmulationResult death =
      EmulateTiny(script + "kill { worker: 1 at_s: 0.05 noticed_after_s: 0.5 }").value();
  EXPECT_EQ(death.summary.steps, whole.summary.steps);
  EXPECT_EQ(death.summary.images, whole.summary.images);  // its rows are divided among the others
  EXPECT_GT(death.summary.virtual_s, whole.summary.virtual_s + 0.49);
  const std::vector<nlohmann::json> events = LinesOf(death, "event");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["virtual_s"], 0.05);
  EXPECT_EQ(events[1]["virtual_s"], 0.55);
  for (const nlohmann::json& line : LinesOf(death, "step")) {
    if (line["virtual_s"] > 0.05) {
      EXPECT_NE(line["worker"], 1) << line;
    }
  }
}

TEST(SynchronousRuleTest, AWorkerThatJoinsTakesItsRows) {
  const EmulationResult result =
      EmulateTiny(kFixed + "workers: 1 join { at_s: 0.05 }", {"train.batch=8"}).value();
  int64_t joined = 0, images = 0;
  for (const nlohmann::json& line : LinesOf(result, "step")) {
    joined += line["worker"] == 1 ? 1 : 0;
    images += line["batch"].get<int64_t>();
  }
  EXPECT_GT(joined, 5);
  EXPECT_EQ(images, 4 * kTinyStepsPerEpoch * 8);
  EXPECT_EQ(images, result.summary.images);
}

// It has the whole state, and waits for the next step only.
TEST(SynchronousRuleTest, AWorkerThatJoinedContinuesWhenAllOthersAreDead) {
  const EmulationResult result = EmulateTiny(
                                     "compute { fixed_ms: 100 } workers: 1 join { at_s: 0.11 } "
                                     "kill { worker: 0 at_s: 0.15 }",
                                     {"train.batch=8"})
                                     .value();
  EXPECT_EQ(result.summary.steps, 4 * kTinyStepsPerEpoch);
  EXPECT_EQ(LinesOf(result, "step").back()["worker"], 1);
}

// Worker 1 joins after worker 2, and has nothing to send to it.
TEST(SynchronousRuleTest, NoStateComesFromAWorkerThatHasNotJoined) {
  EXPECT_THAT(EmulateTiny(kFixed + "workers: 1 join { at_s: 20 } join { at_s: 10 } "
                                   "kill { worker: 0 at_s: 0.01 noticed_after_s: 60 }")
                  .status()
                  .message(),
              HasSubstr("no worker is left"));
}

// On a wire that is slow beside a step; a worker that dies takes its residuals with it.
TEST(SynchronousRuleTest, CompressedGradients) {
  const std::string slow = kFixed + "workers: 4 between_hosts { mbit_per_s: 4 } ";
  const std::vector<std::string> coded = {"dist.compression.scheme.two_bit={}",
                                          "dist.compression.min_elements=100",
                                          "dist.compression.fall_back=false"};
  const EmulationResult dense = EmulateTiny(slow).value();
  const EmulationResult compressed = EmulateTiny(slow, coded).value();
  EXPECT_LT(compressed.summary.sent_bytes, 0.6 * static_cast<double>(dense.summary.sent_bytes));
  EXPECT_LT(compressed.summary.virtual_s, 0.9 * dense.summary.virtual_s);
  EXPECT_GT(LargestDifference(compressed.weights, dense.weights), 0);
  EXPECT_EQ(EmulateTiny(slow, coded)->lines, compressed.lines);
  // Coding takes its time.
  const EmulationResult coding =
      EmulateTiny(
          "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 encode_ms: 3 } workers: 4 "
          "between_hosts { mbit_per_s: 4 }",
          coded)
          .value();
  EXPECT_GT(coding.summary.virtual_s, compressed.summary.virtual_s + 0.02);
  const auto lost = EmulateTiny(slow + "kill { worker: 1 at_s: 0.2 } join { at_s: 1.5 }", coded);
  ASSERT_TRUE(lost.ok()) << lost.status().message();
  EXPECT_EQ(lost->summary.steps, compressed.summary.steps);
}

TEST(SynchronousRuleTest, WhatCannotBeEmulatedIsRefused) {
  EXPECT_THAT(EmulateTiny("workers: 2", {"dist.sync_batch_norm=true"}).status().message(),
              HasSubstr("batch norm cannot see all of them"));
  EXPECT_THAT(EmulateTiny("workers: 2", {"dist.model_parallel.linear=AUTO"}).status().message(),
              HasSubstr("no layers that ranks divide"));
  EXPECT_THAT(EmulateTiny("workers: 2", {"dist.plan=AUTO"}).status().message(),
              HasSubstr("set dist.plan to CONFIG"));
  EXPECT_THAT(EmulateTiny("workers: 2", {"train.patience=2"}).status().message(),
              HasSubstr("leave patience out"));
  EXPECT_THAT(EmulateTiny("workers: 2", {"train.on_nan=SKIP"}).status().message(),
              HasSubstr("set train.on_nan to STOP"));
  EXPECT_THAT(EmulateTiny("workers: 8", {"train.batch=20"}).status().message(),
              HasSubstr("fewer than one batch of 160 over all workers"));
  EXPECT_THAT(EmulateTiny("workers: 2", {"data.image_size=18", "train.phase="}).status().message(),
              HasSubstr("a multiple of 4"));
  EXPECT_THAT(EmulateTiny(kFixed + "workers: 1 kill { worker: 0 at_s: 0.01 noticed_after_s: 1e6 }")
                  .status()
                  .message(),
              HasSubstr("no worker is left"));
}

TEST(SynchronousRuleTest, ALossThatIsNotFiniteEndsTheRun) {
  const EmulationResult result =
      EmulateTiny(kFixed + "workers: 2", {"optim.learning_rate=1e30", "optim.clip_norm=0"}).value();
  EXPECT_THAT(result.summary.not_finite, HasSubstr("the loss or gradient of step "));
  EXPECT_LT(result.summary.steps, 4 * kTinyStepsPerEpoch);
}

}  // namespace
}  // namespace ringtail
