// N ranks train as one machine with a batch N times larger: the same loss curve for every algorithm
// and division; the same bits on every rank; checkpoints that any world resumes.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/exit_code.h"
#include "apps/trainer/checkpoint/metadata_text.h"
#include "core/storage/checkpoint.h"
#include "core/storage/safetensors_writer.h"
#include "dist/collectives/algorithms.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/signalled_program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

constexpr int kSteps = 50;

// The tiny run, with batch norm over all ranks, in buckets of a few parameters.
RunConfig Config() {
  return TinyConfig({"optim.learning_rate=0.02", "train.epochs=10", "dist.sync_batch_norm=true",
                     "dist.check_every_steps=7", "dist.bucket_kib=2", "dist.end_bucket_kib=1"})
      .config;
}

class SeveralRanksTest : public testing::Test {
 protected:
  SeveralRanksTest() { WriteConfig(Config()); }
  void WriteConfig(const RunConfig& config) const {
    std::ofstream(Path("config.textproto")) << PrintTextConfig(config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Train(const std::string& run, int batch,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "train",   "--config",   Path("config.textproto"),
        "--data",  TinyImages(), "--output",
        Path(run), "--set",      fmt::format("train.batch={}", batch)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return DogsVsCats(arguments);
  }

  // Trains on `ranks` ranks, each with `batch` images, and expects success. Only rank 0 prints.
  void RunJob(const std::string& run, int ranks, int batch,
              const std::vector<std::string>& more = {}) const {
    const ProcessResult result = RunProcess(Launch(ranks, Train(run, batch, more)));
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("[0] "));
    EXPECT_THAT(result.out, Not(ContainsRegex("(^|\n)\\[[1-9]")));
  }

  void ExpectSameCurve(const std::string& run, const std::string& expected) const {
    ringtail::ExpectSameCurve(Path(run), Path(expected));
  }

  const TempDir folder_;
};

TEST_F(SeveralRanksTest, EveryAlgorithmGivesTheCurveOfOneRank) {
  RunJob("one", 1, 8);
  ASSERT_EQ(ReadMetrics(Path("one/metrics.jsonl"), "step").size(), static_cast<size_t>(kSteps));
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (const int ranks : {2, 4}) {
      const std::string run = fmt::format("{}{}", algorithm.name, ranks);
      RunJob(run, ranks, 8 / ranks,
             {"--set", fmt::format("dist.algorithm=\"{}\"", algorithm.name)});
      ExpectSameCurve(run, "one");
    }
  }
}

std::string OldestCheckpoint(const std::string& run) {
  std::string oldest;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-") && (oldest.empty() || name < oldest)) oldest = name;
  }
  return run + "/checkpoints/" + oldest;
}

// The same checkpoint of a run that selected `algorithm` for every size.
void RewriteAllreduces(const std::string& path, const std::string& algorithm) {
  const SafetensorsFile file = SafetensorsFile::Read(path).value();
  std::vector<TensorView> tensors;
  for (const auto& [name, entry] : file.entries()) {
    tensors.push_back(ViewF32(name, entry.shape, file.F32(name, entry.shape).value()));
  }
  auto metadata = file.metadata();
  auto selected = ParseAllreduces(metadata.at("allreduce_algorithms")).value();
  ASSERT_FALSE(selected.empty());
  for (auto& [bytes, name] : selected) name = algorithm;
  metadata["allreduce_algorithms"] = AllreducesText(selected);
  ASSERT_TRUE(WriteSafetensors(path, tensors, metadata).ok());
}

// The network is measured anew at every start, but the order of a sum of three must stay.
TEST_F(SeveralRanksTest, AResumedRunKeepsTheAlgorithmsThatItBeganWith) {
  const std::vector<std::string> two_epochs = {"--set", "train.epochs=2", "--set",
                                               "train.keep_checkpoints=9"};
  RunJob("run", 3, 3, two_epochs);
  const std::string oldest = OldestCheckpoint(Path("run"));
  // A baseline that "auto" never selects by itself.
  RewriteAllreduces(oldest, "single_reducer");
  std::vector<std::string> resume = two_epochs;
  resume.insert(resume.end(), {"--resume", oldest});
  RunJob("resumed", 3, 3, resume);
  const auto last = LoadNewestCheckpoint(Path("resumed"));
  ASSERT_TRUE(last.ok()) << last.status().ToString();
  const auto selected = ParseAllreduces(last->file.metadata().at("allreduce_algorithms")).value();
  EXPECT_THAT(selected, Each(Pair(testing::_, "single_reducer")));
}

// As many ranks as before, but on one host: the run continues.
TEST_F(SeveralRanksTest, AnAlgorithmThatDoesNotSuitTheHostsIsChosenAnew) {
  const std::vector<std::string> two_epochs = {"--set", "train.epochs=2", "--set",
                                               "train.keep_checkpoints=9"};
  RunJob("run", 3, 3, two_epochs);
  const std::string oldest = OldestCheckpoint(Path("run"));
  RewriteAllreduces(oldest, "hierarchical");
  std::vector<std::string> resume = two_epochs;
  resume.insert(resume.end(), {"--resume", oldest});
  const ProcessResult result = RunProcess(Launch(3, Train("resumed", 3, resume)));
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex("\\[0\\] .*gradients by hierarchical, which does not suit"));
  EXPECT_THAT(result.err, Not(ContainsRegex("\\[[12]\\] .*does not suit"))) << "one says so";
  const Checkpoint last = LoadNewestCheckpoint(Path("resumed")).value();
  EXPECT_EQ(last.step, LoadNewestCheckpoint(Path("run"))->step);
  EXPECT_THAT(ParseAllreduces(last.file.metadata().at("allreduce_algorithms")).value(),
              Each(Pair(testing::_, Not("hierarchical"))));
}

TEST_F(SeveralRanksTest, SharesMayBeUneven) {
  RunJob("one", 1, 8);
  // Three ranks: five images, two and one.
  const std::string script = "exec \"$@\" --local-batch $((5 / (RANK + 1)))";
  std::vector<std::string> program = {"sh", "-c", script, "sh"};
  for (const std::string& argument : Train("uneven", 8)) program.push_back(argument);
  const ProcessResult result = RunProcess(Launch(3, program));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectSameCurve("uneven", "one");
}

// Without batch norm, whose statistics depend on the parts.
TEST_F(SeveralRanksTest, GradientsInPartsAreSentOnce) {
  RunConfig config = Config();
  config.mutable_net()->mutable_layer()->DeleteSubrange(1, 1);
  ASSERT_EQ(Config().net().layer(1).name(), "bn1");
  WriteConfig(config);
  RunJob("one", 1, 8);
  RunJob("parts", 2, 4, {"--set", "train.accumulation=2"});
  RunJob("whole", 2, 4);
  ExpectSameCurve("parts", "one");
  const auto bytes = [&](const std::string& run) {
    return ReadMetrics(Path(run + "/metrics.jsonl"), "step")[0]["comm_bytes"];
  };
  EXPECT_EQ(bytes("parts"), bytes("whole"));
}

TEST_F(SeveralRanksTest, MetricsListEveryRank) {
  RunJob("run", 2, 4);
  const auto steps = ReadMetrics(Path("run/metrics.jsonl"), "step");
  ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
  for (const auto& step : steps) {
    ASSERT_EQ(step["ranks"].size(), 2U);
    for (const auto& rank : step["ranks"]) {
      EXPECT_GT(rank["forward_ms"], 0);
      EXPECT_GT(rank["backward_ms"], 0);
      EXPECT_GE(rank["exposed_comm_ms"], 0);
      EXPECT_GT(rank["comm_bytes"], 1000);
    }
  }
}

// Constant weights, and classes without images, so that gradients have a large common part.
TEST_F(SeveralRanksTest, TheNoiseScaleDoesNotDependOnTheDivision) {
  RunConfig config = Config();
  config.mutable_optim()->set_learning_rate(1e-30);
  config.mutable_train()->set_epochs(80);  // every fourth step is measured
  config.mutable_train()->set_evaluate_every_epochs(80);
  config.mutable_net()->mutable_layer(7)->mutable_linear()->set_out_features(8);
  WriteConfig(config);
  const auto last = [&](const std::string& run) {
    const auto steps = ReadMetrics(Path(run + "/metrics.jsonl"), "step");
    EXPECT_TRUE(steps.front()["noise_scale"].is_null()) << "nothing to say yet";
    return steps.back()["noise_scale"];
  };
  RunJob("one", 1, 8);
  EXPECT_TRUE(last("one").is_null());
  RunJob("two", 2, 4);
  const double scale = last("two");
  EXPECT_GT(scale, 1);
  RunJob("large_buckets", 2, 4, {"--set", "dist.bucket_kib=4096"});
  EXPECT_NEAR(last("large_buckets"), scale, 1e-6 * scale);
  // Other groups of the same images give other estimates of the same number.
  RunJob("four", 4, 2);
  EXPECT_NEAR(last("four"), scale, 0.3 * scale);
  const std::string script = "exec \"$@\" --local-batch $((5 / (RANK + 1)))";
  std::vector<std::string> program = {"sh", "-c", script, "sh"};
  for (const std::string& argument : Train("uneven", 8)) program.push_back(argument);
  const ProcessResult result = RunProcess(Launch(3, program));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("beyond a global batch of about"));
  EXPECT_NEAR(last("uneven"), scale, 0.3 * scale);
}

TEST_F(SeveralRanksTest, TheRateFollowsTheGlobalBatch) {
  const auto train = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--set", "optim.constant={}"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(Launch(2, Train(run, 4, arguments)));
  };
  const auto rate = [&](const std::string& run) {
    return ReadMetrics(Path(run + "/metrics.jsonl"), "step").back()["learning_rate"];
  };
  const ProcessResult scaled = train("scaled", {"--set", "optim.batch_scaling.rule=LINEAR"});
  EXPECT_EQ(scaled.exit_code, 0) << scaled.err;
  EXPECT_THAT(scaled.out, HasSubstr("learning rate 0.02 at batch 4 -> 0.04 at batch 8 (linear)"));
  EXPECT_THAT(scaled.err, Not(HasSubstr("nothing scales it")));
  EXPECT_EQ(rate("scaled"), 0.04);
  const ProcessResult unscaled = train("unscaled", {});
  EXPECT_EQ(unscaled.exit_code, 0) << unscaled.err;
  EXPECT_THAT(unscaled.err, HasSubstr("nothing scales it"));
  EXPECT_EQ(rate("unscaled"), 0.02);
}

// Two runs have the same bits, although their timing differs. By one algorithm: what "auto" measures to be
// the cheapest may be another one in the second run.
TEST_F(SeveralRanksTest, TheSameBitsInEveryRun) {
  const std::vector<std::string> by_ring = {"--set", "dist.algorithm=ring"};
  RunJob("first", 3, 3, by_ring);
  RunJob("second", 3, 3, by_ring);
  EXPECT_EQ(ReadTensors(Path("first/final.safetensors")),
            ReadTensors(Path("second/final.safetensors")));
}

// Stopped by a signal and resumed by another number of ranks: the result of a single run.
TEST_F(SeveralRanksTest, AnyWorldResumesAnyCheckpoint) {
  RunJob("one", 1, 8);
  ChildProcess job(Launch(4, Train("moved", 2, {"--set", "train.log_every_steps=1"})));
  ASSERT_TRUE(WaitForSteps(&job, 12));
  job.Signal(SIGTERM);
  const ProcessResult stopped = job.Wait();
  EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("continue with --resume"));
  RunJob("moved", 3, 2, {"--resume"});
  ExpectSameCurve("moved", "one");
}

// Only the world can tell the others so: rank 0 reads the tensors, which may take longer than others
// wait for it, after all have joined.
TEST_F(SeveralRanksTest, TheOthersHearThatTheTensorsAreDamaged) {
  RunJob("run", 2, 4, {"--set", "train.epochs=1"});
  const std::string checkpoint = Path("run/checkpoints/step-00000005.safetensors");
  std::fstream file(checkpoint, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  const char last = static_cast<char>(file.peek());
  file.put(static_cast<char>(last ^ 1));
  file.close();
  const ProcessResult result = RunProcess(Launch(2, Train("run", 4, {"--resume", checkpoint})));
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  for (const int rank : {0, 1}) {
    EXPECT_THAT(result.err, ContainsRegex(fmt::format("\\[{}\\] [^\n]*'{}': the checksum of ", rank,
                                                      checkpoint)));
  }
}

TEST_F(SeveralRanksTest, ADisagreementIsRefusedBeforeTheFirstStep) {
  const auto with = [&](const std::string& on_rank_two) {
    const std::string script =
        "if [ $RANK = 2 ]; then exec \"$@\" " + on_rank_two + "; else exec \"$@\"; fi";
    std::vector<std::string> program = {"sh", "-c", script, "sh"};
    for (const std::string& argument : Train("never", 2)) program.push_back(argument);
    const ProcessResult result = RunProcess(Launch(3, program));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_TRUE(ReadMetrics(Path("never/metrics.jsonl"), "step").empty());
    EXPECT_THAT(result.err, HasSubstr("rank 0"));
    EXPECT_THAT(result.err, HasSubstr("rank 2"));
    return result.err;
  };
  EXPECT_THAT(with("--set train.seed=2"), HasSubstr("train.seed"));
  EXPECT_THAT(with("--set train.batch=3"), HasSubstr("train.batch"));
  EXPECT_THAT(with("--set optim.learning_rate=0.5"), HasSubstr("optim.learning_rate"));
  EXPECT_THAT(with("--set dist.algorithm=ring"), HasSubstr("dist.algorithm"));
  EXPECT_THAT(with("--set net.layer[conv2].convolution.out_channels=12"),
              HasSubstr("net.layer[conv2]"));
  EXPECT_THAT(with("--set data.split.seed=9"), HasSubstr("data.split.seed"));
}

}  // namespace
}  // namespace ringtail
