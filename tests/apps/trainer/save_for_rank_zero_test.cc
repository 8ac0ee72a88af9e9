#include "apps/trainer/save_for_rank_zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/apps/trainer/local/rounds_by_hand.h"

namespace ringtail {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

class SaveForRankZeroTest : public testing::Test {
 protected:
  // What a rank without a directory does once the run has failed after two steps.
  void Save(milliseconds patience) {
    rank_.Step(1);
    rank_.Step(1);
    rank_.End();
    SaveForRankZero(run_, rank_.keeper(), world_.progress(), patience);
  }
  // As rank 0 does.
  std::unique_ptr<RunDirectory> TakeFolder() const { return RunDirectory::Open(run_).value(); }

  const TempDir folder_;
  const std::string run_ = folder_.File("run");
  TrainingWorld world_;
  const LoadedConfig loaded_ = ConfigOf({});
  const TrainingData data_ = TrainingData::Open(loaded_.config.data(), &world_).value();
  Rank rank_{loaded_, data_, &world_, /*directory=*/nullptr, ResumePoint()};
};

TEST_F(SaveForRankZeroTest, TriesUntilTheFolderIsFree) {
  auto held = TakeFolder();
  const std::jthread rank_0([&held] {
    std::this_thread::sleep_for(milliseconds(100));
    held.reset();
  });
  Save(std::chrono::hours(1));
  const auto saved = LoadNewestCheckpoint(run_);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->step, 2);
}

TEST_F(SaveForRankZeroTest, SaysSoIfTheFolderStaysTaken) {
  const auto held = TakeFolder();
  CaptureStderr();
  Save(milliseconds(20));
  EXPECT_THAT(GetCapturedStderr(),
              HasSubstr("this rank writes no checkpoint in place of rank 0: the run folder '" +
                        run_ + "' is in use by"));
  EXPECT_FALSE(LoadNewestCheckpoint(run_).ok());
}

// Another survivor was faster, and further.
TEST_F(SaveForRankZeroTest, LeavesALaterCheckpoint) {
  {
    const auto directory = TakeFolder();
    Rank other(loaded_, data_, &world_, directory.get(), ResumePoint());
    for (int step = 0; step < 3; ++step) other.Step(1);
    other.End();
  }
  Save(milliseconds(0));
  EXPECT_EQ(TakeFolder()->checkpoints().Steps().value(), (std::vector<int64_t>{3}));
}

// A rank of another host may not reach it.
TEST_F(SaveForRankZeroTest, MakesNoFolder) {
  Save(milliseconds(0));
  EXPECT_FALSE(std::filesystem::exists(run_));
}

}  // namespace
}  // namespace ringtail
