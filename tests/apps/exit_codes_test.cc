// Exit code 75 means that other ranks did not join or were lost, never a failure of this rank
// itself; and the launcher's verdict. (rank_faults_test.cc has ranks that are lost in training.)
#include "apps/exit_code.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "dist/transport/door/listening_socket.h"
#include "tests/apps/program.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// A port on which this process listens without ever answering.
class HeldPort {
 public:
  std::string number() const { return std::to_string(held_.port); }

 private:
  const ListeningSocket held_ = ListenAt("127.0.0.1:0", std::chrono::milliseconds(1000)).value();
};

std::vector<std::string> Train(const TempDir& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> train = {"train",    "--data",           folder.path(),
                                    "--output", folder.File("run"), "--insecure"};
  train.insert(train.end(), more.begin(), more.end());
  return DogsVsCats(train);
}

std::vector<std::string> TrainAs(const TempDir& folder, const std::string& rank,
                                 const std::string& port) {
  std::vector<std::string> command = {"env", "RINGTAIL_TOKEN=token-0123456789abcdef-of-this-test"};
  const auto train = Train(folder, {"--rank", rank, "--world", "2", "--master", "127.0.0.1:" + port,
                                    "--set", "dist.join_timeout_s=0.3"});
  command.insert(command.end(), train.begin(), train.end());
  return command;
}

TEST(ExitCodeOfWorld, TellsPeersFromThisRank) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kDeadlineExceeded}) {
    EXPECT_EQ(ExitCodeOfWorld({code, "rank 1 is gone"}), kExitLostPeer);
    EXPECT_EQ(ExitCodeOf({code, "this has nothing to do with ranks"}), kExitFailure);
  }
  EXPECT_EQ(ExitCodeOfWorld(AlreadyExists("the port is in use")), kExitFailure);
  EXPECT_EQ(ExitCodeOfWorld(InvalidArgument("a flag")), kExitUsage);
  EXPECT_EQ(ExitCodeOfWorld(OkStatus()), kExitSuccess);
}

TEST(ExitCodesTest, APortInUseIsTheFaultOfRankZero) {
  const TempDir folder;
  const HeldPort port;
  std::vector<std::string> job = {RT_BINARY_DIR "/bin/ringtail_launch",
                                  "-n",
                                  "2",
                                  "--port",
                                  port.number(),
                                  "--timeout-kill",
                                  "0.5",
                                  "--"};
  const auto train = Train(folder);
  job.insert(job.end(), train.begin(), train.end());
  const ProcessResult result = RunProcess(job);
  EXPECT_EQ(result.exit_code, kExitFailure);
  EXPECT_THAT(result.err, HasSubstr("rank 0 cannot listen at 127.0.0.1:" + port.number()));
  const size_t last = result.err.rfind("ringtail_launch: rank ");
  ASSERT_NE(last, std::string::npos) << result.err;
  EXPECT_THAT(result.err.substr(last),
              AllOf(HasSubstr("rank 0 (localhost"), HasSubstr("exited with 1: the first to fail"),
                    Not(HasSubstr("resume with"))));
}

TEST(ExitCodesTest, TheLauncherEndsWithTheCommandToResume) {
  const TempDir folder;
  std::vector<std::string> job = {RT_BINARY_DIR "/bin/ringtail_launch",
                                  "-n",
                                  "2",
                                  "--timeout-kill",
                                  "0.5",
                                  "--",
                                  "sh",
                                  "-c",
                                  "[ $RANK = 0 ] || kill -9 $$; exec \"$@\"",
                                  "sh"};
  const auto train = Train(folder);
  job.insert(job.end(), train.begin(), train.end());
  const ProcessResult result = RunProcess(job);
  EXPECT_EQ(result.exit_code, kExitSignalBase + SIGKILL) << result.err;
  EXPECT_THAT(
      result.err,
      EndsWith(fmt::format("ringtail_launch: resume with: {0}/ringtail_launch -n 2 --timeout-kill "
                           "0.5 -- sh -c '[ $RANK = 0 ] || kill -9 $$; exec \"$@\"' sh "
                           "{0}/dogs_vs_cats train --data {1} --output {1}/run --insecure "
                           "--resume\n",
                           RT_BINARY_DIR "/bin", folder.path())));
}

TEST(ExitCodesTest, ARankWhosePeersNeverJoinHasLostThem) {
  const TempDir folder;
  const std::string port = HeldPort().number();  // free again
  const ProcessResult zero = RunProcess(TrainAs(folder, "0", port));
  EXPECT_EQ(zero.exit_code, kExitLostPeer) << zero.err;
  EXPECT_THAT(zero.err, HasSubstr("rank 1 of 2 has not come within 0.3 s"));
  const ProcessResult one = RunProcess(TrainAs(folder, "1", port));
  EXPECT_EQ(one.exit_code, kExitLostPeer) << one.err;
  EXPECT_THAT(one.err, HasSubstr("rank 1 has found no rank 0 at 127.0.0.1:" + port));
}

}  // namespace
}  // namespace ringtail
