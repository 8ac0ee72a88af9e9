// Ranks that push to servers and pull from them (dist.asynchronous): the synchronous run's bits where
// all wait for all, every image once, the same bits after an interruption, and faults.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/exit_code.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Sets = std::vector<std::string>;
constexpr int64_t kImages = 4 * kTinyStepsPerEpoch * 8;  // of a run whose steps divide an epoch

Sets Rule(const std::string& rule, const Sets& more = {}) {
  Sets sets = {"dist.asynchronous.rule=" + rule};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

class AsynchronousRanksTest : public testing::Test {
 protected:
  AsynchronousRanksTest() { WriteConfig({}); }
  // Batch norm (`statistics`), dropout, momentum and averaging are on.
  void WriteConfig(Sets overrides, bool statistics = true) const {
    overrides.insert(overrides.begin(), {"train.batch=2", "dist.algorithm=\"single_reducer\"",
                                         "train.keep_checkpoints=99", "dist.hang_timeout_s=3"});
    RunConfig config = TinyConfig(overrides).config;
    auto* const layers = config.mutable_net()->mutable_layer();
    const auto is_batch_norm = [](const LayerConfig& layer) { return layer.has_batch_norm(); };
    if (!statistics) {
      layers->erase(std::remove_if(layers->begin(), layers->end(), is_batch_norm), layers->end());
    }
    std::ofstream(Path("config.textproto")) << PrintTextConfig(config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  void RunJob(const std::string& run, int ranks, const Sets& sets, const Sets& more = {}) const {
    Sets arguments = {"train",   "--config",   Path("config.textproto"),
                      "--data",  TinyImages(), "--output",
                      Path(run), "--threads",  "1"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = RunProcess(Launch(ranks, DogsVsCats(arguments)));
    ASSERT_EQ(result.exit_code, 0) << run << result.out << result.err;
  }
  // A rank of three that trains as `sets` say fails after `step`; the others may continue.
  ProcessResult RunWithFault(const Sets& sets, const std::string& fault, int rank,
                             int64_t step) const {
    WriteConfig(sets);
    const std::string binaries = RT_BINARY_DIR;
    return RunProcess({binaries + "/bin/ringtail_launch", "-n", "3", "--no-kill", "--timeout-kill",
                       "1", "--", binaries + "/tests/apps_training_rank_main",
                       Path("config.textproto"), Path("run"), fault, std::to_string(rank),
                       std::to_string(step)});
  }
  std::map<std::string, std::vector<float>> Final(const std::string& run) const {
    return ReadTensors(Path(run + "/final.safetensors"));
  }
  std::vector<nlohmann::json> Updates(const std::string& run) const {
    return ReadMetrics(Path(run + "/metrics.jsonl"), "update");
  }
  // At the end (the last line of updates may be of a moment before).
  double EpochOf(const std::string& run) const {
    return ReadMetrics(Path(run + "/metrics.jsonl"), "evaluation").back()["epoch"];
  }
  int64_t ImagesOf(const std::string& run) const {
    int64_t images = 0;
    for (const auto& line : Updates(run)) {
      if (!line["batch"].is_null()) images += line["batch"].get<int64_t>();
    }
    return images;
  }

  const TempDir folder_;
};

// One server clips the sum as a reducer does; of three none knows the whole.
TEST_F(AsynchronousRanksTest, SynchronousServersHaveTheBitsOfTheReducer) {
  RunJob("reduced", 3, {});
  RunJob("served", 3, Rule("SYNCHRONOUS", {"dist.asynchronous.servers=1"}));
  EXPECT_EQ(Final("served"), Final("reduced"));
  EXPECT_EQ(Updates("served").back()["staleness_max"], 0);
  RunJob("reduced_unclipped", 3, {"optim.clip_norm=0"});
  RunJob("sharded", 3, Rule("SYNCHRONOUS", {"optim.clip_norm=0"}));
  EXPECT_EQ(Final("sharded"), Final("reduced_unclipped"));
}

TEST_F(AsynchronousRanksTest, OneWorkerHasTheBitsOfARunAlone) {
  RunJob("alone", 1, {});
  for (const char* rule : {"ASYNCHRONOUS", "SYNCHRONOUS", "STALE_SYNC"}) {
    RunJob(rule, 1, Rule(rule, {"dist.asynchronous.overlap=false"}));
    EXPECT_EQ(Final(rule), Final("alone")) << rule;
  }
}

TEST_F(AsynchronousRanksTest, EveryImageIsUsedOnceByEachRule) {
  for (const char* rule : {"ASYNCHRONOUS", "SOFT_SYNC", "STALE_SYNC", "DC_ADAPTIVE"}) {
    RunJob(rule, 4, Rule(rule));
    EXPECT_EQ(ImagesOf(rule), kImages) << rule;
    const nlohmann::json last = Updates(rule).back();
    EXPECT_EQ(EpochOf(rule), 4) << rule;
    EXPECT_EQ(last["refused"], 0) << rule;
  }
}

// Without batch norm there are none to send.
TEST_F(AsynchronousRanksTest, ANetWithoutRunningStatisticsTrains) {
  WriteConfig({}, /*statistics=*/false);
  RunJob("reduced", 2, {});
  RunJob("served", 2, Rule("SYNCHRONOUS", {"dist.asynchronous.servers=1"}));
  EXPECT_EQ(Final("served"), Final("reduced"));
  RunJob("asynchronous", 2, Rule("ASYNCHRONOUS"));
  EXPECT_EQ(ImagesOf("asynchronous"), kImages);
  EXPECT_EQ(EpochOf("asynchronous"), 4);
}

// Each server judges for itself how old a gradient is: what the first one throws away is used where
// another has taken it, and the run ends all the same.
TEST_F(AsynchronousRanksTest, WhatOneServerThrowsAwayDoesNotHoldTheRun) {
  RunJob("discards", 4, Rule("RINGMASTER", {"dist.asynchronous.discard_after=2"}));
  EXPECT_EQ(EpochOf("discards"), 4);
}

// The first two of four ranks serve, and do not compute.
TEST_F(AsynchronousRanksTest, ServersMayHaveRanksOfTheirOwn) {
  const Sets dedicated = {"dist.asynchronous.dedicated=true", "dist.asynchronous.servers=2",
                          "optim.clip_norm=0"};
  RunJob("two", 2, Rule("SYNCHRONOUS", {"optim.clip_norm=0"}));
  RunJob("own_ranks", 4, Rule("SYNCHRONOUS", dedicated));
  EXPECT_EQ(Final("own_ranks"), Final("two"));
  RunJob("asynchronous", 4, Rule("ASYNCHRONOUS", dedicated));
  EXPECT_EQ(ImagesOf("asynchronous"), kImages);
  EXPECT_EQ(EpochOf("asynchronous"), 4);
}

// Where the rule is deterministic the rest of a run has the bits of one that was never stopped;
// elsewhere, and with another number of ranks, it ends after as many images.
TEST_F(AsynchronousRanksTest, ResumesFromAnyCheckpoint) {
  const auto resume = [&](const std::string& run, const std::string& step, int ranks,
                          const Sets& sets) {
    const std::string from = Path(run + "/checkpoints/step-" + step + ".safetensors");
    ASSERT_TRUE(std::filesystem::exists(from)) << from;
    RunJob(run + step, ranks, sets, {"--resume", from});
  };
  const Sets synchronous = Rule("SYNCHRONOUS", {"train.checkpoint_every_steps=7"});
  RunJob("synchronous", 2, synchronous);
  for (const char* step : {"00000007", "00000020"}) {
    resume("synchronous", step, 2, synchronous);
    EXPECT_EQ(Final(std::string("synchronous") + step), Final("synchronous")) << step;
  }
  const Sets one = Rule("ASYNCHRONOUS", {"train.checkpoint_every_steps=7"});
  RunJob("one", 1, one);
  resume("one", "00000007", 1, one);
  EXPECT_EQ(Final("one00000007"), Final("one"));
  // What the rule keeps of its workers is in the checkpoint.
  const Sets dana = Rule("DANA", {"train.checkpoint_every_steps=7", "optim.sgd.momentum=0",
                                  "optim.sgd.nesterov=false"});
  RunJob("dana", 1, dana);
  resume("dana", "00000007", 1, dana);
  EXPECT_EQ(Final("dana00000007"), Final("dana"));
  resume("dana", "00000020", 2, dana);
  RunJob("many", 2, Rule("ASYNCHRONOUS"));
  resume("many", "00000040", 3, Rule("ASYNCHRONOUS"));
  EXPECT_EQ(EpochOf("many00000040"), 4);
}

TEST_F(AsynchronousRanksTest, ALossThatIsNotFiniteStopsAllRanksAndNamesTheLayer) {
  const ProcessResult result =
      RunWithFault(Rule("ASYNCHRONOUS", {"optim.learning_rate=1e30"}), "none", 0, 0);
  EXPECT_EQ(result.exit_code, kExitNotFinite) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("its gradient is not used"));
}

// A worker that is lost leaves its images to the others.
TEST_F(AsynchronousRanksTest, TheOthersFinishWithoutAWorker) {
  for (const char* rule : {"ASYNCHRONOUS", "SYNCHRONOUS"}) {
    for (const char* fault : {"kill", "stop"}) {
      const ProcessResult result =
          RunWithFault(Rule(rule, {"dist.asynchronous.servers=1"}), fault, 2, 9);
      EXPECT_EQ(result.exit_code, 0) << rule << fault << result.out << result.err;
      EXPECT_THAT(result.err, AllOf(HasSubstr("rank 2 ("), HasSubstr("its images come again")));
      EXPECT_EQ(EpochOf("run"), 4) << rule << fault;
      EXPECT_EQ(ImagesOf("run"), std::string(rule) == "ASYNCHRONOUS" ? kImages : 4 * 6 * 6)
          << "each is used once";
      std::filesystem::remove_all(Path("run"));
    }
  }
}

// A server that is lost: the copy of its weights takes its place, and no image is lost or used twice.
TEST_F(AsynchronousRanksTest, AReplicaTakesThePlaceOfALostServer) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ASYNCHRONOUS", "stop"}, {"SYNCHRONOUS", "kill"}, {"DC_ADAPTIVE", "kill"}};
  for (const auto& [rule, fault] : cases) {
    const ProcessResult result = RunWithFault(
        Rule(rule, {"dist.asynchronous.replicas=1", "optim.clip_norm=0"}), fault, 1, 9);
    EXPECT_EQ(result.exit_code, 0) << rule << fault << result.out << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 ("), HasSubstr("from its copy")));
    EXPECT_EQ(EpochOf("run"), 4) << rule << fault;
    EXPECT_EQ(ImagesOf("run"), rule == "SYNCHRONOUS" ? 4 * 6 * 6 : kImages) << "each is used once";
    std::filesystem::remove_all(Path("run"));
  }
}

TEST_F(AsynchronousRanksTest, AReplicaChangesNoBits) {
  RunJob("plain", 3, Rule("SYNCHRONOUS", {"optim.clip_norm=0"}));
  RunJob("copied", 3, Rule("SYNCHRONOUS", {"optim.clip_norm=0", "dist.asynchronous.replicas=1"}));
  EXPECT_EQ(Final("copied"), Final("plain"));
}

// A server without a replica takes its part of the weights with it: the job ends, and can be resumed.
TEST_F(AsynchronousRanksTest, ALostServerEndsTheJob) {
  const ProcessResult result = RunWithFault(Rule("ASYNCHRONOUS"), "kill", 1, 45);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("lost rank 1"));
  EXPECT_TRUE(std::filesystem::exists(Path("run/checkpoints/step-00000020.safetensors")));
}

}  // namespace
}  // namespace ringtail
