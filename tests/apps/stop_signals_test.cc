// Signals of users, terminals and schedulers to the program outside of steps;
// tests/apps/stopped_runs_test.cc has signals during steps.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "apps/launch/free_port.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/signalled_program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/mpirun.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

class StopSignalsTest : public testing::Test {
 protected:
  StopSignalsTest() {
    signal(SIGHUP,
           SIG_DFL);  // a signal that is ignored here (nohup) would be ignored in the program
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Train(const std::string& run,
                                 const std::vector<std::string>& settings) const {
    std::vector<std::string> train =
        DogsVsCats({"train", "--config", Path("tiny.textproto"), "--data", TinyImages(), "--output",
                    Path(run), "--threads", "1"});
    for (const std::string& set : settings) train.insert(train.end(), {"--set", set});
    return train;
  }

  // Runs the program in a shell that pipes its output to `reader` and writes its exit code to a
  // file.
  int PipeTo(const std::string& reader, std::vector<std::string> program) const {
    const std::string script = fmt::format("{{ \"$@\"; echo $? > {}; }} | {}", Path("rc"), reader);
    program.insert(program.begin(), {"sh", "-c", script, "sh"});
    RunProcess(program);
    int exit_code = -1;
    std::ifstream(Path("rc")) >> exit_code;
    return exit_code;
  }

  static void WaitForThread(pid_t pid, const std::string& name) {
    for (bool found = false; !found;) {
      ASSERT_EQ(kill(pid, 0), 0);
      const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid);
      std::error_code gone;
      for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
        std::string comm;
        std::getline(std::ifstream(task.path() / "comm"), comm);
        found = found || comm == name;
      }
    }
  }

  const TempDir folder_;
};

// `train | head -1` continues to its end, as under the launcher.
TEST_F(StopSignalsTest, OutputWithoutAReaderIsDropped) {
  EXPECT_EQ(PipeTo("head -1", Train("piped", {"train.log_every_steps=1", "train.epochs=20"})), 0);
  EXPECT_TRUE(std::filesystem::exists(Path("piped/final.safetensors")));
  // More than a buffer at once, and JSON through a stream.
  const std::string config = RT_SOURCE_DIR "/configs/resnet50.textproto";
  for (const char* format : {"--batch=1", "--json"}) {
    EXPECT_EQ(PipeTo("true", DogsVsCats({"summary", "--config", config, "--image-size", "64",
                                         "--set", "net.convolution=ONEDNN", format})),
              0);
  }
}

TEST_F(StopSignalsTest, OneRankAnswersTheFirstOneAtOnce) {
  for (const int ranks : {1, 2}) {
    std::vector<std::string> train =
        Train(fmt::format("told{}", ranks), {"train.log_every_steps=1", "train.epochs=100000"});
    ChildProcess child(ranks == 1 ? train : Launch(ranks, train));
    ASSERT_TRUE(WaitForSteps(&child, 1));
    child.Signal(SIGHUP);
    const ProcessResult result = child.Wait();
    EXPECT_EQ(result.exit_code, 128 + SIGHUP) << result.err;
    const std::string notice = "SIGHUP: stopping after this step; again to stop now\n";
    const size_t first = result.err.find(notice);
    ASSERT_NE(first, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find(notice, first + 1), std::string::npos) << result.err;
    EXPECT_THAT(result.err, HasSubstr("continue with --resume"));
  }
}

// Measuring takes seconds, but the signal takes effect at once; and the run can be started again.
TEST_F(StopSignalsTest, TakesEffectBetweenTwoMeasurementsOfTheFirstStep) {
  setenv("XDG_CACHE_HOME", Path("cache").c_str(), 1);
  const std::string config = RT_SOURCE_DIR "/configs/resnet18.textproto";
  ChildProcess child(
      DogsVsCats({"train", "--config", config, "--data", TinyImages(), "--output",
                  Path("measuring"), "--set", "train.batch=32", "--set", "data.image_size=128"}));
  // The introduction; its line about the images is the last before the network is set up.
  WaitForThread(child.pid(), "rt-signals");
  while (!std::filesystem::exists(Path("measuring/config.textproto"))) {
    ASSERT_EQ(kill(child.pid(), 0), 0);
  }
  child.Signal(SIGTERM);
  const ProcessResult result = child.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("stopped by a signal after step 0 of"));
}

TEST_F(StopSignalsTest, TakesEffectWhileItWaitsForOtherRanks) {
  const auto port = FindFreePort();
  ASSERT_TRUE(port.ok());
  for (const char* rank : {"RANK=0", "RANK=1"}) {
    ChildProcess child(
        Train("joining", {"dist.join_timeout_s=3600"}),
        {rank, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", *port),
         "RINGTAIL_TOKEN=a-token-for-this-test-alone"});
    WaitForThread(child.pid(), "rt-signals");
    child.Signal(SIGTERM);
    const ProcessResult result = child.Wait();
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
    EXPECT_THAT(result.err, HasSubstr("stopped by SIGTERM"));
  }
}

// No step ends without rank 1: rank 0 must not promise one. (Over gRPC it knows of the death first.)
TEST_F(StopSignalsTest, MpirunsSigtermAfterADeathIsSaidToBeThat) {
  const auto train =
      Train("bereft", {"dist.transport=MPI", "train.epochs=100000", "train.log_every_steps=1"});
  const std::string script = fmt::format(
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then "
      "  (until [ -s {} ]; do sleep 0.1; done; kill -KILL $$) & "
      "fi; exec \"$@\"",
      Path("bereft/metrics.jsonl"));
  std::vector<std::string> rank = {"sh", "-c", script, "sh"};
  rank.insert(rank.end(), train.begin(), train.end());
  const ProcessResult result = RunMpirun(2, rank);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("SIGTERM from mpirun, which ends the job: another rank"));
  EXPECT_THAT(result.err, Not(HasSubstr("after this step")));
}

// So the launcher need not kill ranks that wait for one that failed early.
TEST_F(StopSignalsTest, RanksThatWaitForOneThatFailedEndByTheLaunchersFirstSignal) {
  const std::string launcher = RT_BINARY_DIR "/bin/ringtail_launch";
  std::vector<std::string> job = {launcher,
                                  "-n",
                                  "3",
                                  "--timeout-kill",
                                  "2",
                                  "--",
                                  "sh",
                                  "-c",
                                  "[ $RANK = 1 ] && exit 5; exec \"$@\"",
                                  "sh"};
  const auto train = Train("waiting", {"dist.join_timeout_s=3600"});
  job.insert(job.end(), train.begin(), train.end());
  const ProcessResult result = RunProcess(job);
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ranks 0,2: exited with 143 (SIGTERM) (after a signal from"));
  EXPECT_THAT(result.err, Not(HasSubstr("SIGKILL")));
}

}  // namespace
}  // namespace ringtail
