// The program is killed and stopped at random moments and must end with the bits of an undisturbed
// run.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/random.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/program.h"
#include "tests/apps/signalled_program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int kInterruptions = 20;
constexpr int kEpochs = 80;  // far more than pass during the interruptions, on a fast disk, too

class InterruptionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
    const ProcessResult alone = RunProcess(Train("alone"));
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }

  static std::vector<std::string> Train(const std::string& run) {
    return DogsVsCats({"train", "--config", Path("tiny.textproto"), "--data", TinyImages(),
                       "--output", Path(run), "--resume", "--set",
                       fmt::format("train.epochs={}", kEpochs), "--set", "train.log_every_steps=1",
                       "--set", "train.checkpoint_every_steps=1"});
  }

  // At a random moment.
  static ProcessResult Interrupt(const std::string& run, int signal, Rng* rng) {
    constexpr int kMostSteps = 6, kMostMicroseconds = 20000;
    return SignalAtRandom(Train(run), signal, kMostSteps, kMostMicroseconds, rng);
  }

  void ExpectTheBitsOfTheRunLeftAlone(const std::string& run) const {
    const ProcessResult rest = RunProcess(Train(run));
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(ReadTensors(Path(run + "/final.safetensors")),
              ReadTensors(Path("alone/final.safetensors")));
    EXPECT_EQ(ReadTensors(Path(run + "/checkpoints/best.safetensors")),
              ReadTensors(Path("alone/checkpoints/best.safetensors")));
  }

  static TempDir* folder_;
};
TempDir* InterruptionTest::folder_ = nullptr;

TEST_F(InterruptionTest, KilledAtRandomMoments) {
  Rng rng(RngKey(20).With(kTestStream));
  int killed = 0;
  for (int i = 0; i < kInterruptions; ++i) {
    killed += Interrupt("killed", SIGKILL, &rng).signal == SIGKILL ? 1 : 0;
  }
  EXPECT_EQ(killed, kInterruptions);
  const int64_t reached = LoadNewestCheckpoint(Path("killed")).value().step;
  EXPECT_GT(reached, kInterruptions);  // it resumed where it was, each time
  EXPECT_LT(reached, kEpochs * kTinyStepsPerEpoch);
  ExpectTheBitsOfTheRunLeftAlone("killed");
}

TEST_F(InterruptionTest, StoppedAtRandomMoments) {
  Rng rng(RngKey(21).With(kTestStream));
  int stopped = 0;
  for (int i = 0; i < kInterruptions; ++i) {
    const int signal = i % 2 == 0 ? SIGTERM : SIGINT;
    const ProcessResult result = Interrupt("stopped", signal, &rng);
    // Before the program has parsed its flags, a signal ends it as it ends other programs.
    EXPECT_TRUE(result.exit_code == 128 + signal || result.signal == signal) << result.err;
    if (result.exit_code == 128 + signal) ++stopped;
  }
  EXPECT_GT(stopped, kInterruptions / 2);
  ExpectTheBitsOfTheRunLeftAlone("stopped");
}

// A later one ends it at once: tests/core/stop_signal_test.cc.
TEST_F(InterruptionTest, TwoSignalsTogetherCountAsOne) {
  ChildProcess child(Train("twice"));
  ASSERT_TRUE(WaitForSteps(&child, 1));
  child.SignalTogether({SIGTERM, SIGINT});
  const ProcessResult result = child.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("continue with --resume"));
  ExpectTheBitsOfTheRunLeftAlone("twice");
}

TEST_F(InterruptionTest, ASecondRunInTheSameFolderIsRefused) {
  ChildProcess first(Train("shared"));
  ASSERT_TRUE(WaitForSteps(&first, 1));
  const std::string holder = fmt::format("process {} ", first.pid());
  first.Signal(SIGSTOP);
  const ProcessResult second = RunProcess(Train("shared"));
  first.Signal(SIGCONT);
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait().exit_code, 128 + SIGTERM);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, testing::HasSubstr(holder));
}

TEST_F(InterruptionTest, ARateOfABillionEndsWithCodeThreeAndNamesTheLayer) {
  std::vector<std::string> train = Train("billion");
  for (const char* set : {"optim.learning_rate=1e30", "optim.clip_norm=0"}) {
    train.insert(train.end(), {"--set", set});
  }
  const ProcessResult result = RunProcess(train);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("layer '"));
}

}  // namespace
}  // namespace ringtail
