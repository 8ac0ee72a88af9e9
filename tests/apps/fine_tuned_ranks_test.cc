// Several ranks fine-tune as one does: rank 0 alone reads the weights, frozen layers are not
// exchanged, and any checkpoint before or after they are unfrozen continues to the same bits.
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

using testing::HasSubstr;

class FineTunedRanksTest : public testing::Test {
 protected:
  FineTunedRanksTest() {
    const LoadedConfig loaded =
        TinyConfig({"optim.learning_rate=0.02", "train.epochs=3", "train.freeze=conv1,bn1",
                    // Of a run as short as this: twice the rate, but for trained weights.
                    "optim.batch_scaling={rule: LINEAR reference_batch: 8 reference_images: 1000}",
                    "train.freeze_epochs=1", "train.keep_checkpoints=99", "train.threads=1",
                    "dist.sync_batch_norm=true", "dist.check_every_steps=2"});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(loaded.config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  ProcessResult Train(int ranks, const std::string& run, std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"train",
                                          "--config",
                                          Path("config.textproto"),
                                          "--output",
                                          Path(run),
                                          "--set",
                                          fmt::format("train.batch={}", 8 / ranks)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProcessResult result = RunProcess(Launch(ranks, DogsVsCats(arguments)));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }

  // Weights to begin with.
  std::vector<std::string> Warm() const {
    Train(1, "start",
          {"--set", "train.freeze=", "--set", "train.freeze_epochs=0", "--set", "train.epochs=1"});
    return {"--weights", Path("start")};
  }

  const TempDir folder_;
};

TEST_F(FineTunedRanksTest, TwoAreAsOneAndContinueFromAnyCheckpoint) {
  const std::vector<std::string> warm = Warm();
  Train(1, "one", warm);
  const ProcessResult two = Train(2, "two", warm);
  EXPECT_THAT(two.out, HasSubstr("start/final.safetensors: 10 of 10 tensors taken"));
  EXPECT_THAT(two.out, HasSubstr("frozen for 1 epoch: "));
  ExpectSameCurve(Path("two"), Path("one"));
  const auto start = ReadTensors(Path("start/final.safetensors"));
  const auto frozen = ReadTensors(Path("two/checkpoints/step-00000005.safetensors"));
  const auto end = ReadTensors(Path("two/final.safetensors"));
  for (const char* name : {"conv1.weight", "bn1.weight", "bn1.running_mean"}) {
    EXPECT_EQ(frozen.at(name), start.at(name)) << name;
    EXPECT_NE(end.at(name), start.at(name)) << name;
  }
  for (const int step : {5, 10}) {
    const std::string run = fmt::format("from-{}", step);
    Train(2, run, {"--resume", Path(fmt::format("two/checkpoints/step-{:08}.safetensors", step))});
    EXPECT_EQ(ReadTensors(Path(run + "/final.safetensors")), end) << step;
  }
}

// The other begins, and continues, on a host that reaches neither weights nor checkpoints.
TEST_F(FineTunedRanksTest, OnlyTheFirstRankNeedsToKnowHowTheRunBegan) {
  Train(2, "two", Warm());
  const auto end = ReadTensors(Path("two/final.safetensors"));
  const auto train = [&](const std::string& run, const std::string& first,
                         const std::string& second) {
    const std::string script = fmt::format(
        "cd {}; if [ $RANK = 0 ]; then more='{}'; else more='{}'; fi; "
        "exec {}/bin/dogs_vs_cats train --config config.textproto --set train.batch=4 "
        "--output {}-$RANK $more",
        folder_.path(), first, second, RT_BINARY_DIR, run);
    const ProcessResult result = RunProcess(Launch(2, {"sh", "-c", script}));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(ReadTensors(Path(run + "-0/final.safetensors")), end) << run;
  };
  train("begun", "--weights start", "");
  train("continued", "--resume two/checkpoints/step-00000005.safetensors", "--resume");
}

// Frozen layers have routes before they train; what was not sent of the others is not lost with the
// generation, and no warning says so.
TEST_F(FineTunedRanksTest, CompressingRanksContinueFromAnyCheckpoint) {
  std::vector<std::string> compress = {
      "--set", "dist.compression.scheme.one_bit={}", "--set", "dist.compression.min_elements=10",
      "--set", "dist.compression.fall_back=false",   "--set", "train.checkpoint_every_steps=1"};
  const ProcessResult whole = Train(2, "whole", compress);
  EXPECT_THAT(whole.err, testing::Not(HasSubstr("WARNING")));
  const auto end = ReadTensors(Path("whole/final.safetensors"));
  for (const int step : {4, 5, 6, 10}) {
    const std::string run = fmt::format("from-{}", step);
    std::vector<std::string> resume = compress;
    resume.insert(
        resume.end(),
        {"--resume", Path(fmt::format("whole/checkpoints/step-{:08}.safetensors", step))});
    Train(2, run, resume);
    EXPECT_EQ(ReadTensors(Path(run + "/final.safetensors")), end) << step;
  }
  // What was not sent is added by the one that is left.
  compress.insert(compress.end(), {"--set", "train.batch=4", "--resume",
                                   Path("whole/checkpoints/step-00000005.safetensors")});
  const ProcessResult alone = Train(1, "alone", compress);
  EXPECT_THAT(alone.err, testing::Not(HasSubstr("were lost")));
}

}  // namespace
}  // namespace ringtail
