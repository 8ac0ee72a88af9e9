// Processes that are killed or stopped while others continue (tolerant_rank_main.cc), limits of 5 s.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLostAPeer = 75;

class TolerantProcessTest : public ::testing::TestWithParam<std::string> {
 protected:
  void Start(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks_.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
          std::string(RT_BINARY_DIR) + "/tests/dist_tolerant_rank_main", std::to_string(rank),
          std::to_string(world_size), folder_.path(), GetParam()}));
    }
    for (const auto& rank : ranks_) EXPECT_EQ(rank->ReadLine(), "running");
  }

  // All ranks but these have lost them, and no other; and finish their work.
  void ExpectTheOthersFinish(const std::vector<int>& lost) {
    std::ofstream(folder_.File("finish"));
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (std::find(lost.begin(), lost.end(), rank) != lost.end()) continue;
      const ProcessResult result = ranks_[rank]->Wait();
      EXPECT_EQ(result.exit_code, 0) << "rank " << rank << ": " << result.err;
      EXPECT_THAT(result.out, HasSubstr("finished"));
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        const std::string line = fmt::format("lost {}\n", other);
        if (std::find(lost.begin(), lost.end(), other) != lost.end()) {
          EXPECT_THAT(result.out, HasSubstr(line)) << "rank " << rank;
        } else {
          EXPECT_THAT(result.out, Not(HasSubstr(line))) << "rank " << rank << ": " << result.err;
        }
      }
    }
  }

  void AwaitLoss(int rank, int lost) {
    while (const auto line = ranks_[rank]->ReadLine()) {
      if (*line == fmt::format("lost {}", lost)) return;
    }
    FAIL() << "rank " << rank << " has not lost rank " << lost << ": " << ranks_[rank]->Wait().err;
  }

  const TempDir folder_;
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

INSTANTIATE_TEST_SUITE_P(Over, TolerantProcessTest, ::testing::Values("memory", "wire"),
                         [](const auto& info) { return info.param; });

TEST_P(TolerantProcessTest, KilledRanksAreLostAndTheOthersFinish) {
  Start(4);
  ranks_[2]->Signal(SIGKILL);
  for (const int rank : {0, 1, 3}) AwaitLoss(rank, 2);
  ranks_[1]->Signal(SIGKILL);
  for (const int rank : {0, 3}) AwaitLoss(rank, 1);
  ExpectTheOthersFinish({1, 2});
}

TEST_P(TolerantProcessTest, AStoppedRankIsLostAndEndsWhenItWakes) {
  Start(4);
  ranks_[2]->Signal(SIGSTOP);
  for (const int rank : {0, 1, 3}) AwaitLoss(rank, 2);
  ranks_[2]->Signal(SIGCONT);
  const ProcessResult woken = ranks_[2]->Wait();
  EXPECT_EQ(woken.exit_code, kLostAPeer);
  EXPECT_THAT(woken.err, AllOf(HasSubstr("rank 2, this process, was stopped for"),
                               HasSubstr("the others have continued without it")));
  ExpectTheOthersFinish({2});
}

TEST_P(TolerantProcessTest, WithoutRankZeroAllEnd) {
  Start(3);
  ranks_[0]->Signal(SIGKILL);
  for (const int rank : {1, 2}) {
    const ProcessResult result = ranks_[rank]->Wait();
    EXPECT_EQ(result.exit_code, kLostAPeer);
    EXPECT_THAT(result.err, HasSubstr("lost rank 0 "));
  }
}

}  // namespace
}  // namespace ringtail
