// Processes that are stopped or hang (tests/dist/liveness/liveness_rank_main.cc), limits of 5 s.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLostAPeer = 75;

class Job {
 public:
  explicit Job(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks_.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
          std::string(RT_BINARY_DIR) + "/tests/dist_liveness_rank_main", std::to_string(rank),
          std::to_string(world_size), folder_.path()}));
    }
    for (const auto& rank : ranks_) EXPECT_EQ(rank->ReadLine(), "training");
  }

  ChildProcess& rank(int rank) { return *ranks_[rank]; }
  void Ask(const std::string& file) const { std::ofstream(folder_.File(file)); }

  void Finish() {
    Ask("finish");
    for (const auto& rank : ranks_) {
      const ProcessResult result = rank->Wait();
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.out, HasSubstr("finished"));
    }
  }

  // Every rank but `culprit` has said so, and ends as one that lost a peer.
  void ExpectAllOthersSay(int culprit, const std::string& sentence) {
    for (int i = 0; i < static_cast<int>(ranks_.size()); ++i) {
      if (i == culprit) continue;
      const ProcessResult result = ranks_[i]->Wait();
      EXPECT_EQ(result.exit_code, kLostAPeer) << result.err;
      EXPECT_THAT(result.err, AllOf(HasSubstr("explained: "), HasSubstr(sentence)));
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        if (other == culprit) continue;
        EXPECT_THAT(result.err, Not(HasSubstr(fmt::format("rank {} has sent nothing", other))));
        EXPECT_THAT(result.err, Not(HasSubstr(fmt::format("rank {} is alive", other))));
      }
    }
  }

 private:
  const TempDir folder_;
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

TEST(LivenessProcess, AJobEndsInGoodOrder) { Job(3).Finish(); }

TEST(LivenessProcess, AStoppedRankIsNamedAndBlamesNobodyWhenItGoesOn) {
  for (const int culprit : {0, 2}) {
    Job job(3);
    job.rank(culprit).Signal(SIGSTOP);
    job.ExpectAllOthersSay(culprit, fmt::format("rank {} has sent nothing for", culprit));
    job.rank(culprit).Signal(SIGCONT);
    const ProcessResult zombie = job.rank(culprit).Wait();
    EXPECT_EQ(zombie.exit_code, kLostAPeer);
    EXPECT_THAT(zombie.err,
                HasSubstr(fmt::format("rank {}, this process, was stopped for", culprit)));
  }
}

TEST(LivenessProcess, ATrainingThreadThatHangsIsNamedAndItsProcessEnds) {
  Job job(3);
  job.Ask("hang.1");
  job.ExpectAllOthersSay(1, "rank 1 is alive, but its training thread has not moved for 5");
  const ProcessResult culprit = job.rank(1).Wait();
  EXPECT_EQ(culprit.exit_code, kLostAPeer);
  EXPECT_THAT(culprit.err, AllOf(HasSubstr("ended: "), HasSubstr("rank 1 is alive"),
                                 HasSubstr("in backward of step")));
}

TEST(LivenessProcess, AShortStopIsNoError) {
  Job job(3);
  for (int rank = 0; rank < 3; ++rank) {
    job.rank(rank).Signal(SIGSTOP);
    std::this_thread::sleep_for(1s);  // the fault itself
    job.rank(rank).Signal(SIGCONT);
  }
  job.Finish();
}

TEST(LivenessProcess, AJobThatIsStoppedAsAWholeGoesOn) {
  Job job(3);
  for (int rank = 0; rank < 3; ++rank) job.rank(rank).Signal(SIGSTOP);
  std::this_thread::sleep_for(7s);  // the fault itself
  for (int rank = 0; rank < 3; ++rank) job.rank(rank).Signal(SIGCONT);
  job.Finish();
}

}  // namespace
}  // namespace ringtail
