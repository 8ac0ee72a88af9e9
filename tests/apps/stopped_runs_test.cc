// Runs of the default network (Muon), on one rank and on two, that are stopped at random moments
// and resumed: each stop is in order, and the result has the bits of an undisturbed run.
//
// RINGTAIL_STOPPED_RUNS: number of stops (default 40); tests/stopped_runs.sh makes many.
// RINGTAIL_STOPPED_RUNS_SEED: seed of the moments (default 1).
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>

#include "apps/synthesize/synthesize.h"
#include "core/random.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/signalled_program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGUSR2};
constexpr int kStops = 40;
constexpr int kMostStopsOfARun = 6;
constexpr int kSteps = 14;

int FromEnvironment(const char* name, int fallback) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

class StoppedRunsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    signal(SIGHUP,
           SIG_DFL);  // a signal that is ignored here (nohup) would be ignored in the program
    folder_ = new TempDir;
    // Without measurements of other runs, which may change the last bits.
    setenv("XDG_CACHE_HOME", Path("cache").c_str(), 1);
    const Status drawn = Synthesize({.output = Path("images"), .images = 72, .seed = 5});
    ASSERT_TRUE(drawn.ok()) << drawn.ToString();
    for (const int ranks : {1, 2}) {
      const ProcessResult alone = RunProcess(Train(ranks, Alone(ranks)));
      ASSERT_EQ(alone.exit_code, 0) << alone.err;
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }
  static std::string Alone(int ranks) { return fmt::format("alone{}", ranks); }

  static std::vector<std::string> Train(int ranks, const std::string& run) {
    std::vector<std::string> train = DogsVsCats(
        {"train", "--data", Path("images"), "--output", Path(run), "--resume", "--threads", "1"});
    const std::string config = RT_SOURCE_DIR "/configs/dogs_vs_cats.textproto";
    train.insert(train.begin() + 2, {"--config", config});
    for (const std::string& set :
         {fmt::format("train.batch={}", 32 / ranks), fmt::format("train.epochs={}", kSteps / 2),
          std::string("train.accumulation=1"), std::string("train.log_every_steps=1"),
          std::string("train.phase[0].image_size=32"), std::string("train.phase[1].image_size=32"),
          std::string("train.evaluation_image_size=32"), std::string("data.image_size=32"),
          std::string("train.evaluate_every_epochs=3")}) {
      train.insert(train.end(), {"--set", set});
    }
    return ranks == 1 ? train : Launch(ranks, train);
  }

  // Starts the run and stops it at a random moment: before training, in a step, or while it writes
  // a file.
  static ProcessResult Stop(int ranks, const std::string& run, int signal, Rng* rng) {
    constexpr int kMostMicroseconds = 150'000, kMostSteps = 5;
    return SignalAtRandom(Train(ranks, run), signal, kMostSteps, kMostMicroseconds, rng);
  }

  // Before a program has done anything, a signal ends it as it does any other.
  static bool StoppedInOrder(const ProcessResult& result, int signal) {
    return result.exit_code == 128 + signal ||
           (result.signal == signal && result.out.empty() && result.err.empty());
  }

  static TempDir* folder_;
};
TempDir* StoppedRunsTest::folder_ = nullptr;

TEST_F(StoppedRunsTest, ResumeToTheBitsOfUndisturbedRuns) {
  const int stops = FromEnvironment("RINGTAIL_STOPPED_RUNS", kStops);
  const int seed = FromEnvironment("RINGTAIL_STOPPED_RUNS_SEED", 1);
  Rng rng(RngKey(seed).With(kTestStream));
  int stopped = 0, too_late = 0, broken = 0, runs = 0, other_bits = 0;
  while (stopped + broken < stops && too_late < 10 * stops) {
    const int ranks = runs % 2 + 1;
    const std::string run = fmt::format("run{}", runs++);
    bool finished = false, whole = true;
    for (int stop = 0; stop < kMostStopsOfARun && !finished; ++stop) {
      const int signal = kSignals[rng.Below(std::size(kSignals))];
      const ProcessResult result = Stop(ranks, run, signal, &rng);
      finished = result.exit_code == 0;
      if (finished) {
        ++too_late;
      } else if (StoppedInOrder(result, signal)) {
        ++stopped;
      } else {
        ++broken;
        whole = false;
        ADD_FAILURE() << run << " of " << ranks << " ranks, told by signal " << signal
                      << ", ended with " << result.exit_code << ", signal " << result.signal
                      << ":\n"
                      << result.err;
      }
    }
    const ProcessResult rest = RunProcess(Train(ranks, run));
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    if (rest.exit_code != 0 || ReadTensors(Path(run + "/final.safetensors")) !=
                                   ReadTensors(Path(Alone(ranks) + "/final.safetensors"))) {
      ++other_bits;
      ADD_FAILURE() << run << " of " << ranks << " ranks has other bits than one left alone"
                    << (whole ? "" : "; it was broken before");
    }
    std::filesystem::remove_all(Path(run));
  }
  std::printf(
      "stopped in order %d, broken %d, at their end already %d; %d runs, other bits in %d\n",
      stopped, broken, too_late, runs, other_bits);
  EXPECT_GE(stopped, stops);
}

}  // namespace
}  // namespace ringtail
