// Ranks that divide linear layers among them train as one machine does, and their checkpoints are
// whole: any number of ranks continues from them, divided or not.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kBatch = 12;  // of all ranks

// The tiny network with two linear layers, of numbers of outputs that ranks do not divide evenly.
std::string ConfigText() {
  std::string text = TinyConfigText();
  const std::string head = "  layer { name: \"fc\" linear";
  const size_t at = text.find(head);
  EXPECT_NE(at, std::string::npos);
  text.insert(at, R"(  layer { name: "large1" linear { out_features: 22 } }
  layer { name: "relu3" relu {} }
  layer { name: "dropout3" dropout { rate: 0.2 } }
  layer { name: "large2" linear { out_features: 19 bias: false } }
)");
  return text;
}

class ShardedRanksTest : public testing::Test {
 protected:
  ShardedRanksTest() {
    const std::vector<std::string> set = {"data.path=\"" + TinyImages() + "\"",
                                          "optim.learning_rate=0.02",
                                          "train.epochs=3",
                                          "train.keep_checkpoints=99",
                                          "train.threads=1",
                                          "dist.sync_batch_norm=true",
                                          "dist.check_every_steps=2",
                                          "train.checkpoint_every_steps=2"};
    const LoadedConfig loaded = ParseRunConfig(ConfigText(), "sharded.textproto", set).value();
    std::ofstream(Path("config.textproto")) << PrintTextConfig(loaded.config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  ProcessResult Run(int ranks, const std::string& run, std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"train",
                                          "--config",
                                          Path("config.textproto"),
                                          "--output",
                                          Path(run),
                                          "--set",
                                          fmt::format("train.batch={}", kBatch / ranks)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(Launch(ranks, DogsVsCats(arguments)));
  }
  ProcessResult Train(int ranks, const std::string& run, std::vector<std::string> more = {}) const {
    ProcessResult result = Run(ranks, run, std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }
  void ExpectSameNetwork(const std::string& run, const std::string& expected) const {
    const auto tensors = ReadTensors(Path(run + "/final.safetensors"));
    for (const auto& [name, values] : ReadTensors(Path(expected + "/final.safetensors"))) {
      const std::vector<float>& own = tensors.at(name);
      ASSERT_EQ(own.size(), values.size()) << run << ", " << name;
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(own[i], values[i], 2e-4) << run << ", " << name << "[" << i << "]";
      }
    }
  }
  std::string Checkpoint(const std::string& run, int step) const {
    return Path(fmt::format("{}/checkpoints/step-{:08}.safetensors", run, step));
  }

  const TempDir folder_;
};

const std::vector<std::string> kAll = {"--set", "dist.model_parallel.linear=ALL"};

std::vector<std::string> And(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(ShardedRanksTest, TrainAsOneDoesAndAnyNumberContinues) {
  Train(1, "one");
  const ProcessResult three = Train(3, "three", kAll);
  EXPECT_THAT(three.out, HasSubstr("large1, large2 are divided among 3 ranks: "));
  ExpectSameCurve(Path("three"), Path("one"));
  ExpectSameNetwork("three", "one");
  Train(2, "pieces", And(kAll, {"--set", "dist.model_parallel.pieces=3"}));
  ExpectSameCurve(Path("pieces"), Path("one"));

  // The same ranks, to the same bits.
  const auto end = ReadTensors(Path("three/final.safetensors"));
  const std::string saved = Checkpoint("three", 4);
  Train(3, "again", And(kAll, {"--resume", saved}));
  EXPECT_EQ(ReadTensors(Path("again/final.safetensors")), end);
  // Others: divided among fewer, whole, and on one; with the batch that the run has.
  const std::vector<std::string> go_on = {"--resume", saved, "--set", "train.batch=4"};
  Train(2, "fewer", And(kAll, go_on));
  ExpectSameNetwork("fewer", "one");
  Train(2, "whole", And(go_on, {"--set", "dist.model_parallel.linear=WHOLE"}));
  ExpectSameNetwork("whole", "one");
  Train(1, "alone", go_on);
  ExpectSameNetwork("alone", "one");
  // And a run that was whole continues divided.
  Train(3, "divided", And(kAll, {"--resume", Checkpoint("one", 4), "--set", "train.batch=12"}));
  ExpectSameNetwork("divided", "one");
}

TEST_F(ShardedRanksTest, AWarmStartReachesTheRowsOfAllRanks) {
  Train(1, "start", {"--set", "train.epochs=1"});
  const std::vector<std::string> warm = {"--weights", Path("start"), "--set", "train.epochs=1"};
  Train(1, "one", warm);
  Train(2, "two", And(kAll, warm));
  ExpectSameCurve(Path("two"), Path("one"));
  ExpectSameNetwork("two", "one");
}

TEST_F(ShardedRanksTest, NamedLayersAndCompressionOfTheRest) {
  const std::vector<std::string> set = {
      "--set", "dist.model_parallel={ linear: NAMED layer: \"large2\" }",
      "--set", "dist.compression={ scheme { top_k { density: 0.5 } } }",
      "--set", "train.epochs=1"};
  const ProcessResult named = Train(2, "named", set);
  EXPECT_THAT(named.out, HasSubstr("large2 is divided among 2 ranks: "));
  Train(2, "resumed", And(set, {"--resume", Checkpoint("named", 2)}));
  EXPECT_EQ(ReadTensors(Path("resumed/final.safetensors")),
            ReadTensors(Path("named/final.safetensors")));
}

TEST_F(ShardedRanksTest, AutoDividesWhatCostsFewerBytes) {
  // 4 rows of at most 22 outputs: 16 inputs and 22 outputs, or a gradient of 22 x 17.
  const ProcessResult few =
      Train(3, "few", {"--set", "dist.model_parallel.linear=AUTO", "--set", "train.epochs=1"});
  EXPECT_THAT(few.out, HasSubstr("large1, large2 are divided"));
  const ProcessResult many =
      Train(1, "alone", {"--set", "dist.model_parallel.linear=AUTO", "--set", "train.epochs=1"});
  EXPECT_THAT(many.out, Not(HasSubstr("divided")));
}

TEST_F(ShardedRanksTest, ANanIsFoundByTheRankThatHasIt) {
  const ProcessResult result =
      Run(3, "nan", And(kAll, {"--set", "optim.learning_rate=1e30", "--set", "optim.clip_norm=0"}));
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("NaN or infinity"));
}

TEST_F(ShardedRanksTest, WhatCannotBeDividedIsSaid) {
  const ProcessResult muon = Run(2, "muon", And(kAll, {"--set", "optim.muon={}"}));
  EXPECT_EQ(muon.exit_code, 2) << muon.out << muon.err;
  EXPECT_THAT(muon.err, HasSubstr("optim.muon works on whole matrices"));
  const ProcessResult name =
      Run(2, "name", {"--set", "dist.model_parallel={ linear: NAMED layer: \"conv1\" }"});
  EXPECT_THAT(name.err, HasSubstr("'conv1' is no linear layer that trains; those are: large1, "
                                  "large2, fc"));
  Train(1, "one", {"--set", "train.epochs=1"});
  const ProcessResult uneven = Run(5, "uneven",
                                   And(kAll, {"--resume", Checkpoint("one", 2), "--set",
                                              "train.epochs=1", "--set", "train.batch=12"}));
  EXPECT_EQ(uneven.exit_code, 2) << uneven.out << uneven.err;
  EXPECT_THAT(uneven.err, HasSubstr("the ranks take batches of 3, 3, 2, 2, 2 images"));
}

}  // namespace
}  // namespace ringtail
