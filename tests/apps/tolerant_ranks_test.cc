// Jobs that outlive their losses, from joining to the exit code, under ringtail_launch --no-kill
// (tolerant_rank_main.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/apps/tiny_run.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessResult RunJob(const std::string& fault, int rank, const std::string& trace = "") {
  const TempDir folder;
  const std::string config = folder.File("config.textproto");
  std::ofstream(config) << PrintTextConfig(TinyConfig({"dist.hang_timeout_s=3"}).config);
  return RunProcess({RT_BINARY_DIR "/bin/ringtail_launch", "-n", "4", "--no-kill", "--timeout-kill",
                     "1", "--", RT_BINARY_DIR "/tests/apps_tolerant_rank_main", config, fault,
                     std::to_string(rank), trace});
}

TEST(TolerantRanksTest, AllAreThereToTheEnd) {
  const ProcessResult result = RunJob("none", 0);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("rank 1: all"), HasSubstr("rank 2: all"), HasSubstr("rank 3: all")));
  EXPECT_THAT(result.err, Not(HasSubstr("lost")));
}

TEST(TolerantRanksTest, TheOthersFinishWithoutARankThatDies) {
  const TempDir folder;
  const std::string path = folder.File("trace.json");
  const ProcessResult result = RunJob("kill", 2, path);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("rank 1: all"), HasSubstr("rank 2: some"), HasSubstr("rank 3: all")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("lost rank 2"), HasSubstr("the others continue without"),
                                HasSubstr("rank 2: ended by SIGKILL"),
                                HasSubstr("the job has succeeded without rank 2")));
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file);
  std::set<int> in_trace;
  for (const auto& event : trace["traceEvents"]) in_trace.insert(event["pid"].get<int>());
  EXPECT_EQ(in_trace, (std::set<int>{0, 1, 3})) << "what rank 2 had recorded is lost with it";
}

TEST(TolerantRanksTest, AStoppedRankIsNamedAndHoldsNobody) {
  const ProcessResult result = RunJob("stop", 3);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("rank 1: all"), HasSubstr("rank 3: some")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 3 ("), HasSubstr("has sent nothing for 3."),
                                HasSubstr("the job has succeeded without rank 3")));
}

TEST(TolerantRanksTest, ARankThatFailsByItselfSaysWhyAndTheOthersFinish) {
  const ProcessResult result = RunJob("fail", 1);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("the disk of this rank is full"), HasSubstr("rank 1: exited with 1"),
                    HasSubstr("the job has succeeded without rank 1")));
}

}  // namespace
}  // namespace ringtail
