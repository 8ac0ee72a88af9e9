// Ranks that have layers of their own train with the bits of one process that accumulates as many
// micro-batches, and their checkpoints are whole: any cut continues from them, or none.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kPipeline = "dist.model_parallel.pipeline";

std::vector<std::string> And(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> Set(const std::vector<std::string>& assignments) {
  std::vector<std::string> flags;
  for (const std::string& assignment : assignments) {
    flags.insert(flags.end(), {"--set", assignment});
  }
  return flags;
}

// Two stages cut after the second convolution, three before the last layer as well.
std::vector<std::string> Stages(int stages, const std::string& more = "") {
  const std::string cuts =
      stages == 2 ? "cut_after: \"conv2\"" : "cut_after: [\"conv2\", \"dropout\"]";
  return Set({fmt::format("{}={{ stages: {} {} {} }}", kPipeline, stages, cuts, more)});
}

class PipelineRanksTest : public testing::Test {
 protected:
  PipelineRanksTest() {
    const std::vector<std::string> set = {"data.path=\"" + TinyImages() + "\"",
                                          "train.epochs=3",
                                          "train.batch=8",
                                          "train.accumulation=4",
                                          "train.keep_checkpoints=99",
                                          "train.threads=1",
                                          "dist.check_every_steps=2",
                                          "train.checkpoint_every_steps=2"};
    const LoadedConfig loaded = TinyConfig(set);
    std::ofstream(Path("config.textproto")) << PrintTextConfig(loaded.config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  ProcessResult Run(int ranks, const std::string& run, const std::vector<std::string>& more) const {
    const std::vector<std::string> arguments =
        And({"train", "--config", Path("config.textproto"), "--output", Path(run)}, more);
    return RunProcess(Launch(ranks, DogsVsCats(arguments)));
  }
  ProcessResult Train(int ranks, const std::string& run,
                      const std::vector<std::string>& more = {}) const {
    ProcessResult result = Run(ranks, run, more);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }
  std::map<std::string, std::vector<float>> End(const std::string& run) const {
    return ReadTensors(Path(run + "/final.safetensors"));
  }
  std::string Checkpoint(const std::string& run, int step) const {
    return Path(fmt::format("{}/checkpoints/step-{:08}.safetensors", run, step));
  }
  void ExpectSameBits(const std::string& run, const std::string& expected) const {
    EXPECT_EQ(End(run), End(expected)) << run;
    for (const char* kind : {"step", "evaluation"}) {
      const auto lines = ReadMetrics(Path(run + "/metrics.jsonl"), kind);
      const auto same = ReadMetrics(Path(expected + "/metrics.jsonl"), kind);
      ASSERT_EQ(lines.size(), same.size()) << run;
      for (size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i]["loss"], same[i]["loss"]) << run << ", " << kind << " " << i;
        EXPECT_EQ(lines[i]["accuracy"], same[i]["accuracy"]) << run << ", " << kind << " " << i;
      }
    }
  }

  const TempDir folder_;
};

TEST_F(PipelineRanksTest, TrainWithTheBitsOfOneProcess) {
  Train(1, "one");
  const ProcessResult two = Train(2, "two", Stages(2));
  EXPECT_THAT(two.out, HasSubstr("a pipeline, 2 stages, schedule 1f1b, 4 micro-batches: conv1 .. "
                                 "conv2 | "));
  ExpectSameBits("two", "one");
  Train(3, "three", Stages(3, "schedule: GPIPE"));
  ExpectSameBits("three", "one");
  // Checkpoints are those of one process, whatever form writes them.
  EXPECT_EQ(ReadTensors(Checkpoint("two", 4)), ReadTensors(Checkpoint("one", 4)));
  EXPECT_EQ(ReadTensors(Checkpoint("three", 4)), ReadTensors(Checkpoint("one", 4)));
  // What one form has begun another ends.
  Train(3, "more_stages", And(Stages(3), {"--resume", Checkpoint("two", 4)}));
  EXPECT_EQ(End("more_stages"), End("one"));
  Train(2, "from_one", And(Stages(2), {"--resume", Checkpoint("one", 2)}));
  EXPECT_EQ(End("from_one"), End("one"));
  Train(1, "alone", And(Stages(3), {"--resume", Checkpoint("three", 6)}));
  EXPECT_EQ(End("alone"), End("one"));
}

// Ranks with slices of linear layers, too: the rounding is theirs, and a batch norm's rows.
TEST_F(PipelineRanksTest, RanksThatDivideLayersContinue) {
  Train(2, "stages", And(Stages(2), Set({"train.epochs=1"})));
  const std::vector<std::string> more = Set({"train.epochs=1", "dist.model_parallel.linear=ALL"});
  const ProcessResult divided =
      Train(2, "divided", And(more, {"--resume", Checkpoint("stages", 2)}));
  EXPECT_THAT(divided.out, HasSubstr("fc is divided among 2 ranks"));
  Train(2, "back",
        And(And(Stages(2), Set({"train.epochs=1"})), {"--resume", Checkpoint("divided", 4)}));
  const auto end = End("back"), first = End("stages");
  for (const auto& [name, values] : first) {
    if (name.find("running_") != std::string::npos) continue;  // of one row, there
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(end.at(name)[i], values[i], 0.05) << name;
    }
  }
}

// Four ranks are two pipelines, as two ranks with whole networks.
TEST_F(PipelineRanksTest, ReplicasAddUpTheirGradients) {
  const std::vector<std::string> half = Set({"train.batch=4", "train.accumulation=2"});
  Train(2, "data_parallel", half);
  const ProcessResult four = Train(4, "pipelines", And(half, Stages(2)));
  EXPECT_THAT(four.out, HasSubstr("2 pipelines, 2 stages"));
  ExpectSameCurve(Path("pipelines"), Path("data_parallel"));
  EXPECT_EQ(End("pipelines"), End("data_parallel"));
  // And continue as ranks with whole networks.
  Train(2, "whole", And(half, {"--resume", Checkpoint("pipelines", 4)}));
  EXPECT_EQ(End("whole"), End("data_parallel"));
}

TEST_F(PipelineRanksTest, AWarmStartReachesEveryStage) {
  Train(1, "start", Set({"train.epochs=1"}));
  const std::vector<std::string> warm =
      And({"--weights", Path("start")}, Set({"train.epochs=1", "train.freeze=\"conv1\""}));
  Train(1, "one", warm);
  Train(2, "two", And(warm, Stages(2)));
  ExpectSameBits("two", "one");
}

TEST_F(PipelineRanksTest, TheCutIsMeasuredIfItIsNotNamed) {
  const ProcessResult result =
      Train(2, "measured", Set({fmt::format("{}.stages=2", kPipeline), "train.epochs=1"}));
  EXPECT_THAT(result.err, HasSubstr("cut by the times of layers: a step is to take"));
  Train(1, "one", Set({"train.epochs=1"}));
  ExpectSameBits("measured", "one");
}

TEST_F(PipelineRanksTest, ABf16WireTrainsInHalfTheBytes) {
  Train(2, "stored", And(Stages(2), Set({"train.epochs=1"})));
  Train(2, "rounded", And(Stages(2, "wire: BFLOAT16"), Set({"train.epochs=1"})));
  const auto stored = ReadMetrics(Path("stored/metrics.jsonl"), "step");
  const auto rounded = ReadMetrics(Path("rounded/metrics.jsonl"), "step");
  EXPECT_NE(stored.back()["loss"], rounded.back()["loss"]);
  EXPECT_NEAR(stored.back()["loss"], rounded.back()["loss"], 0.05);
  EXPECT_LT(rounded.back()["comm_bytes"].get<double>(),
            0.7 * stored.back()["comm_bytes"].get<double>());
}

TEST_F(PipelineRanksTest, ANanIsNamedByTheStageThatHasIt) {
  const ProcessResult result =
      Run(2, "nan", And(Stages(2), Set({"optim.learning_rate=1e30", "optim.clip_norm=0"})));
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("NaN or infinity"), HasSubstr("rank ")));
}

TEST_F(PipelineRanksTest, WhatCannotBeCutIsSaid) {
  const ProcessResult ranks = Run(3, "ranks", Stages(2));
  EXPECT_EQ(ranks.exit_code, 2) << ranks.out << ranks.err;
  EXPECT_THAT(ranks.err, HasSubstr("3 ranks are no multiple of 2 stages: start 2 or 4"));
  const ProcessResult name =
      Run(2, "name", Set({fmt::format("{}={{ stages: 2 cut_after: \"nowhere\" }}", kPipeline)}));
  EXPECT_EQ(name.exit_code, 2) << name.out << name.err;
  EXPECT_THAT(name.err, HasSubstr("the net cannot be cut after 'nowhere'"));
  const ProcessResult both =
      Run(2, "both", And(Stages(2), Set({"dist.model_parallel.linear=ALL"})));
  EXPECT_THAT(both.err, HasSubstr("leave out dist.model_parallel.linear or"));
  for (const char* batch : {"4", "auto"}) {
    const ProcessResult own = Run(2, "own", And(Stages(2), {"--local-batch", batch}));
    EXPECT_EQ(own.exit_code, 2) << own.out << own.err;
    EXPECT_THAT(own.err, HasSubstr("leave out --local-batch; train.batch is that of a pipeline"));
  }
}

}  // namespace
}  // namespace ringtail
