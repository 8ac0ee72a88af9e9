// Ranks that compress their gradients: a stopped run resumes to the same bits, also with another
// number of ranks (dist/compression_state_test checks the residuals); errors and fall-backs are
// reported.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/storage/checkpoint.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct SchemeAndRoute {
  const char* scheme;
  const char* route;  // fixed, because two runs could measure different choices
};

class CompressedRanksTest : public testing::TestWithParam<SchemeAndRoute> {
 protected:
  CompressedRanksTest() {
    const RunConfig config =
        TinyConfig({"train.epochs=8", "dist.check_every_steps=5", "dist.bucket_kib=2",
                    "dist.end_bucket_kib=1", "dist.compression.min_elements=100",
                    "dist.compression.fall_back=false", "dist.compression.guard_every_steps=3"})
            .config;
    std::ofstream(Path("config.textproto")) << PrintTextConfig(config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Train(const std::string& run, const std::string& scheme,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "train",   "--config",   Path("config.textproto"),
        "--data",  TinyImages(), "--output",
        Path(run), "--set",      "dist.compression.scheme." + scheme};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return DogsVsCats(arguments);
  }
  static ProcessResult Run(int ranks, const std::vector<std::string>& train) {
    return RunProcess(Launch(ranks, train));
  }
  static void WaitForSteps(ChildProcess* job, int steps) {
    while (steps > 0) {
      const auto line = job->ReadLine();
      ASSERT_TRUE(line);
      if (line->find(" step ") == std::string::npos) continue;
      steps -= line->find("loss") != std::string::npos ? 1 : 0;
    }
  }
  // A run that is stopped in the middle.
  void RunUntilStopped(int ranks, const std::vector<std::string>& train) const {
    ChildProcess job(Launch(ranks, train));
    WaitForSteps(&job, 12);
    job.Signal(SIGTERM);
    EXPECT_EQ(job.Wait().exit_code, 143);
  }

  const TempDir folder_;
};

TEST_P(CompressedRanksTest, AStoppedRunResumesToTheSameBits) {
  const std::vector<std::string> batch = {
      "--set", "train.batch=2",
      "--set", "train.log_every_steps=1",
      "--set", std::string("dist.compression.route=") + GetParam().route,
  };
  const ProcessResult whole = Run(4, Train("whole", GetParam().scheme, batch));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.err, ContainsRegex("gradients: .* -> .* MB to each rank and step"));
  EXPECT_THAT(whole.err, HasSubstr("compressed and uncompressed: cosine"));
  RunUntilStopped(4, Train("stopped", GetParam().scheme, batch));
  std::vector<std::string> resume = batch;
  resume.emplace_back("--resume");
  const ProcessResult resumed = Run(4, Train("stopped", GetParam().scheme, resume));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(ReadTensors(Path("stopped/final.safetensors")),
            ReadTensors(Path("whole/final.safetensors")));
}

// A missing part is named, and the previous checkpoint is whole; the best checkpoint has its parts,
// too.
TEST_F(CompressedRanksTest, EachRankHasItsOwnPart) {
  const std::vector<std::string> batch = {"--set", "train.batch=2", "--set",
                                          "dist.compression.route=GATHER"};
  const ProcessResult whole = Run(4, Train("whole", "one_bit={}", batch));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.err, Not(HasSubstr("do not see")));
  const Checkpoint newest = LoadNewestCheckpoint(Path("whole")).value();
  ASSERT_TRUE(newest.parts);
  EXPECT_EQ(newest.parts->world(), 4);
  for (const auto& [name, entry] : newest.file.entries()) {
    EXPECT_THAT(name, Not(testing::StartsWith("compression."))) << "it is in a part";
  }
  for (int rank = 0; rank < 4; ++rank) {
    const auto part = ReadPart(newest.PartPath(rank), newest.parts->ranks[rank]);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_TRUE(part->Has(fmt::format("compression.unsent.{}", rank)));
  }
  const auto expected = ReadTensors(Path("whole/final.safetensors"));
  std::filesystem::remove(newest.PartPath(2));
  std::vector<std::string> resume = batch;
  resume.emplace_back("--resume");
  const ProcessResult resumed = Run(4, Train("whole", "one_bit={}", resume));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("'" + newest.PartPath(2) + "' of the checkpoint is missing"));
  EXPECT_THAT(resumed.err, ContainsRegex("going back to the checkpoint of step"));
  EXPECT_EQ(ReadTensors(Path("whole/final.safetensors")), expected);

  resume.push_back(BestCheckpointPath(Path("whole")));
  const ProcessResult best = Run(4, Train("whole", "one_bit={}", resume));
  ASSERT_EQ(best.exit_code, 0) << best.err;
  EXPECT_EQ(ReadTensors(Path("whole/final.safetensors")), expected);
}

// Kills all ranks at once, mostly in the middle of a save, since every step is followed by one; the
// files on the disk then resume to the same bits.
TEST_F(CompressedRanksTest, KilledDuringASaveItResumesToTheSameBits) {
  std::vector<std::string> batch = {
      "--set", "train.batch=2",           "--set", "dist.compression.route=GATHER",
      "--set", "train.log_every_steps=1", "--set", "train.checkpoint_every_steps=1",
      "--set", "train.epochs=20"};
  const ProcessResult whole = Run(3, Train("whole", "one_bit={}", batch));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  batch.emplace_back("--resume");
  for (int kill = 0; kill < 4; ++kill) {
    ChildProcess job(Launch(3, Train("killed", "one_bit={}", batch)));
    WaitForSteps(&job, 2 + kill);
    job.Signal(SIGKILL);  // its ranks end with it,
    job.Wait();
    while (!RunLock::Acquire(Path("killed")).ok())
      std::this_thread::yield();  // until the writer has ended
  }
  const ProcessResult resumed = Run(3, Train("killed", "one_bit={}", batch));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(ReadTensors(Path("killed/final.safetensors")),
            ReadTensors(Path("whole/final.safetensors")));
  int64_t parts = 0;
  for (const auto& file : std::filesystem::directory_iterator(Path("killed/checkpoints"))) {
    parts += file.path().filename().string().find(".rank-") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(parts, 3 * 3) << "of the newest two, and of the best";
}

INSTANTIATE_TEST_SUITE_P(Schemes, CompressedRanksTest,
                         testing::Values(SchemeAndRoute{"one_bit={}", "SHARDED"},
                                         SchemeAndRoute{"power_sgd.rank=1", "GATHER"},
                                         SchemeAndRoute{"qsgd={}", "GATHER"}),
                         [](const auto& info) {
                           const std::string name = info.param.scheme;
                           return name.substr(0, name.find_first_of(".="));
                         });

TEST_F(CompressedRanksTest, AnotherNumberOfRanksResumes) {
  const std::vector<std::string> batch = {"--set", "train.batch=2", "--set",
                                          "train.log_every_steps=1"};
  std::vector<std::string> resume = batch;
  resume.emplace_back("--resume");
  RunUntilStopped(4, Train("run", "one_bit={}", batch));
  RunUntilStopped(2, Train("run", "one_bit={}", resume));
  const ProcessResult alone = RunProcess(Train("run", "one_bit={}", resume));
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("gradients: one rank sends nothing"));
}

// The scheme has the momentum, and the optimizer none, also on one rank.
TEST_F(CompressedRanksTest, OneRankHasTheMomentumOfItsScheme) {
  const std::vector<std::string> few = {
      "--set", "train.epochs=1", "--set", "optim.weight_decay=0", "--set", "optim.clip_norm=0"};
  const auto train = [&](const std::string& run, const std::string& scheme,
                         const std::string& momentum) {
    std::vector<std::string> more = few;
    more.insert(more.end(),
                {"--set", "optim.sgd.nesterov=false", "--set", "optim.sgd.momentum=" + momentum});
    const ProcessResult result = RunProcess(Train(run, scheme, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadTensors(Path(run + "/final.safetensors"));
  };
  const auto expected = train("sgd", "dense={}", "0.9"), plain = train("plain", "dense={}", "0"),
             same = train("dgc", "dgc.momentum=0.9", "0");
  ASSERT_EQ(same.size(), expected.size());
  double largest = 0;
  for (const auto& [name, values] : expected) {
    const auto &with = same.at(name), &without = plain.at(name);
    ASSERT_EQ(with.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(with[i], values[i], 1e-4 * (1 + std::abs(values[i]))) << name;
      largest = std::max(largest, double{std::abs(without[i] - values[i])});
    }
  }
  EXPECT_GT(largest, 1e-2) << "it makes no difference here";
}

// A position beside every value doubles the bytes, whatever the speed of network and machine.
TEST_F(CompressedRanksTest, GradientsTravelDenseWhereCompressionDoesNotPay) {
  const ProcessResult result =
      Run(2, Train("run", "top_k.density=1", {"--set", "dist.compression.fall_back=true"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no gradient is compressed"));
  EXPECT_THAT(result.err, HasSubstr("encoding takes longer than it saves"));
}

TEST_F(CompressedRanksTest, MomentumIsNotAppliedTwice) {
  const ProcessResult twice = Run(2, Train("run", "dgc={}"));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("dgc keeps the momentum itself"));
  const ProcessResult once =
      Run(2, Train("run", "dgc.momentum=0.9",
                   {"--set", "optim.sgd.momentum=0", "--set", "optim.sgd.nesterov=false"}));
  EXPECT_EQ(once.exit_code, 0) << once.err;
}

// qsgd has no residual, so that all tensors are those of the run, in f32.
TEST_F(CompressedRanksTest, ADamagedCheckpointIsNamed) {
  ASSERT_EQ(Run(2, Train("run", "qsgd={}", {"--set", "train.epochs=1"})).exit_code, 0);
  const Checkpoint newest = LoadNewestCheckpoint(Path("run")).value();
  std::vector<TensorView> tensors;
  for (const auto& [name, entry] : newest.file.entries()) {
    tensors.push_back(ViewF32(name, entry.shape, newest.file.F32(name, entry.shape).value()));
  }
  auto metadata = newest.file.metadata();
  ASSERT_THAT(metadata["compression_ways"], testing::StartsWith("2:"));
  metadata["compression_ways"] = "2:g";
  ASSERT_TRUE(WriteSafetensors(newest.path, tensors, metadata).ok());
  const ProcessResult resumed =
      Run(2, Train("run", "qsgd={}", {"--set", "train.epochs=1", "--resume"}));
  EXPECT_NE(resumed.exit_code, 0);
  EXPECT_THAT(resumed.err,
              HasSubstr(newest.path + ": 'compression_ways' does not fit the network: the "));
}

TEST_F(CompressedRanksTest, ANumberOutOfRangeIsShown) {
  const ProcessResult result = Run(2, Train("run", "top_k.density=2"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("density is 2; it must be greater than 0 and at most 1"));
}

}  // namespace
}  // namespace ringtail
