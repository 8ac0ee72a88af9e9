#include "core/storage/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/logging.h"
#include "core/storage/file.h"
#include "tests/core/checkpoint_content.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Metadata = std::map<std::string, std::string>;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<RunLock> lock = RunLock::Acquire(run_);
    ASSERT_TRUE(lock.ok()) << lock.status().ToString();
    lock_.emplace(*std::move(lock));
    Open();
  }
  void Open() {
    StatusOr<CheckpointDirectory> opened = CheckpointDirectory::Open(*lock_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    directory_.emplace(*std::move(opened));
  }
  void Save(int64_t step) {
    const Status status = SaveTestCheckpoint(&*directory_, step);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void SaveAfterLoss(int64_t step, int keep = CheckpointDirectory::kDefaultKeep) {
    const Status status = directory_->Save(step, {}, {{kAgreedRanksKey, "0"}}, keep);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::string FailedCheck() const { return run_ + "/checkpoints/failed-check"; }
  void Damage(int64_t step) { std::filesystem::resize_file(directory_->Path(step), 4096); }
  // The step of the newest checkpoint, whose content is checked; -1: none.
  int64_t NewestStep() const {
    const StatusOr<Checkpoint> newest = LoadNewestCheckpoint(run_);
    return newest.ok() && HoldsItsStep(*newest) ? newest->step : -1;
  }

  const TempDir dir_;
  const std::string run_ = dir_.File("run");
  std::optional<RunLock> lock_;
  std::optional<CheckpointDirectory> directory_;
};

TEST_F(CheckpointTest, LoadsASavedCheckpoint) {
  EXPECT_EQ(LoadNewestCheckpoint(run_).status().code(), StatusCode::kNotFound);
  Save(12);
  EXPECT_EQ(directory_->Path(12), run_ + "/checkpoints/step-00000012.safetensors");
  const StatusOr<Checkpoint> newest = LoadNewestCheckpoint(run_);
  ASSERT_TRUE(newest.ok()) << newest.status().ToString();
  EXPECT_EQ(newest->step, 12);
  EXPECT_EQ(newest->path, directory_->Path(12));
  EXPECT_TRUE(HoldsItsStep(*newest));
}

TEST_F(CheckpointTest, RunWithoutFolderHasNoCheckpoint) {
  const Status status = LoadNewestCheckpoint(dir_.File("other")).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(dir_.File("other")));
}

TEST_F(CheckpointTest, ADeletedCheckpointFolderIsCreatedAgain) {
  ASSERT_TRUE(directory_->Save(1, {}, {}).ok());
  std::filesystem::remove_all(run_ + "/checkpoints");
  ASSERT_TRUE(directory_->Save(2, {}, {}).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 2);
}

// Run 1's folder is renamed, and the next run starts under its name: each writes into its own
// folder.
TEST_F(CheckpointTest, SavesIntoTheRenamedFolder) {
  ASSERT_TRUE(directory_->Save(1, {}, {}).ok());
  std::filesystem::rename(run_, dir_.File("old"));
  const StatusOr<RunLock> next = RunLock::Acquire(run_);
  ASSERT_TRUE(next.ok());
  ASSERT_TRUE(directory_->Save(2, {}, {}).ok());
  ASSERT_TRUE(directory_->SaveBest(2).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(LoadNewestCheckpoint(dir_.File("old"))->step, 2);
  EXPECT_TRUE(std::filesystem::exists(BestCheckpointPath(dir_.File("old"))));
  EXPECT_EQ(directory_->Path(2), dir_.File("old/checkpoints/step-00000002.safetensors"));
}

// If the folder was deleted, the run writes nothing into the next run of that name.
TEST_F(CheckpointTest, NeverWritesIntoAnotherRunsFolder) {
  ASSERT_TRUE(directory_->Save(1, {}, {}).ok());
  std::filesystem::remove_all(run_);
  const StatusOr<RunLock> next = RunLock::Acquire(run_);
  ASSERT_TRUE(next.ok());
  const Status status = directory_->Save(2, {}, {});
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("is in use by process"));
  EXPECT_FALSE(directory_->SaveBest(1).ok());
  EXPECT_THAT(*ListFolder(run_), ElementsAre("lock"));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const int64_t step : {5, 10, 99'999'999, 100'000'000}) Save(step);
  EXPECT_THAT(*directory_->Steps(), ElementsAre(99'999'999, 100'000'000));
  EXPECT_EQ(NewestStep(), 100'000'000);
  EXPECT_TRUE(directory_->Save(100'000'001, {}, {}, 1).ok());
  EXPECT_THAT(*directory_->Steps(), ElementsAre(100'000'001));
}

TEST_F(CheckpointTest, SavingAStepAgainReplacesIt) {
  Save(3);
  ASSERT_TRUE(directory_->Save(3, {}, {{"config", "new"}}).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->file.metadata().at("config"), "new");
  EXPECT_THAT(*directory_->Steps(), ElementsAre(3));
}

TEST_F(CheckpointTest, LaterStepsAreDeletedAfterResumingFromAnEarlierOne) {
  for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(directory_->Save(step, {}, {}, 3).ok());
  ASSERT_TRUE(directory_->Save(15, {}, {}, 3).ok());  // resumed from step 10
  EXPECT_THAT(*directory_->Steps(), ElementsAre(10, 15));
}

TEST_F(CheckpointTest, BestOutlivesItsStep) {
  Save(1);
  ASSERT_TRUE(directory_->SaveBest(1).ok());
  for (const int64_t step : {2, 3, 4}) Save(step);
  StatusOr<Checkpoint> best = LoadCheckpoint(BestCheckpointPath(run_));
  ASSERT_TRUE(best.ok()) << best.status().ToString();
  EXPECT_TRUE(best->step == 1 && HoldsItsStep(*best));
  ASSERT_TRUE(directory_->SaveBest(4).ok());
  best = LoadCheckpoint(BestCheckpointPath(run_));
  EXPECT_TRUE(best.ok() && best->step == 4 && HoldsItsStep(*best));
  EXPECT_EQ(directory_->SaveBest(1).code(), StatusCode::kNotFound);
  EXPECT_EQ(LoadCheckpoint(BestCheckpointPath(run_))->step, 4);
}

TEST_F(CheckpointTest, FallsBackWithAWarning) {
  Save(1);
  Save(2);
  Damage(2);
  testing::internal::CaptureStderr();
  const int64_t step = NewestStep();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(step, 1);
  EXPECT_THAT(log, AllOf(HasSubstr("checkpoint refused: '" + directory_->Path(2)),
                         HasSubstr("not inside the"), HasSubstr("checkpoint of step 1")));
}

// The head of a checkpoint is read without its tensors; that of a truncated one is refused.
TEST_F(CheckpointTest, AHeadSaysWhatTheCheckpointSays) {
  EXPECT_EQ(FindNewestCheckpoint(run_).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(directory_->Save(1, {}, {{kAgreedRanksKey, "3"}, {"config", "old"}}).ok());
  Save(2);
  std::fstream file(directory_->Path(2), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');  // in the last tensor
  file.close();
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1);
  EXPECT_EQ(FindNewestCheckpoint(run_)->step, 2);
  EXPECT_EQ(FindNewestCheckpoint(run_)->path, directory_->Path(2));
  Damage(2);
  const CheckpointHead head = FindNewestCheckpoint(run_).value();
  EXPECT_EQ(head.step, 1);
  EXPECT_EQ(head.agreed_ranks(), 3);
  EXPECT_EQ(head.metadata.at("config"), "old");
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  ASSERT_TRUE(directory_->Save(3, {}, {{kAgreedRanksKey, "0"}}, /*keep=*/3).ok());
  EXPECT_EQ(FindNewestCheckpoint(run_)->step, 1);
}

// A checkpoint written after ranks were lost is loaded, unless the ranks differed before.
TEST_F(CheckpointTest, UnagreedCheckpointsCountUntilACheckFails) {
  ASSERT_TRUE(directory_->Save(1, {}, {{kAgreedRanksKey, "3"}}).ok());
  ASSERT_TRUE(directory_->Save(2, {}, {{kAgreedRanksKey, "0"}}).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 2);
  EXPECT_EQ(LoadNewestCheckpoint(run_)->agreed_ranks(), 0);
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  Open();  // by another process: the mark stays
  testing::internal::CaptureStderr();
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("'" + directory_->Path(2) + "' was written after ranks were lost"));
  ASSERT_TRUE(directory_->Save(3, {}, {{kAgreedRanksKey, "0"}}).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1);
  ASSERT_TRUE(directory_->Save(4, {}, {{kAgreedRanksKey, "3"}}).ok());
  ASSERT_TRUE(directory_->Save(5, {}, {{kAgreedRanksKey, "0"}}).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 5);
}

// Ranks are lost again and again, and then found to differ.
TEST_F(CheckpointTest, TheNewestAgreedOneOutlivesThoseAfterLosses) {
  for (const int keep : {1, 2, 3}) {
    for (const char* agreed : {"3", "1", ""}) {  // none: of an older version
      std::filesystem::remove_all(run_ + "/checkpoints");
      const Metadata sure = *agreed == '\0' ? Metadata() : Metadata{{kAgreedRanksKey, agreed}};
      ASSERT_TRUE(directory_->Save(900, {}, sure, keep).ok());
      ASSERT_TRUE(directory_->Save(1000, {}, sure, keep).ok());
      for (const int64_t step : {1300, 1600, 1700, 1800}) SaveAfterLoss(step, keep);
      EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1800);
      EXPECT_EQ(directory_->Steps()->size(), static_cast<size_t>(keep) + 1);
      ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
      EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1000) << keep;
    }
  }
}

// What cannot be loaded, or is another step's, takes the place of none.
TEST_F(CheckpointTest, AnAgreedOneThatIsDamagedDoesNotCount) {
  ASSERT_TRUE(directory_->Save(1, {}, {{kAgreedRanksKey, "3"}}).ok());
  ASSERT_TRUE(directory_->Save(2, {}, {{kAgreedRanksKey, "3"}}).ok());
  std::filesystem::copy_file(directory_->Path(1), directory_->Path(3));
  std::ofstream(directory_->Path(2)) << "x";
  SaveAfterLoss(4, /*keep=*/1);
  EXPECT_THAT(*directory_->Steps(), ElementsAre(1, 4));
}

// The run went back to step 1000, and lost ranks once more.
TEST_F(CheckpointTest, ARefusedCheckpointDoesNotPushOutTheAgreedOne) {
  ASSERT_TRUE(directory_->Save(1000, {}, {{kAgreedRanksKey, "3"}}).ok());
  SaveAfterLoss(1500);
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  SaveAfterLoss(1700);
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1000);
}

// It would be loaded again without the mark, if the new one were damaged.
TEST_F(CheckpointTest, RefusedCheckpointsEndWithTheMark) {
  ASSERT_TRUE(directory_->Save(1000, {}, {{kAgreedRanksKey, "3"}}).ok());
  SaveAfterLoss(1300);
  SaveAfterLoss(1900);
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  ASSERT_TRUE(directory_->Save(1500, {}, {{kAgreedRanksKey, "3"}}).ok());
  EXPECT_THAT(*directory_->Steps(), ElementsAre(1000, 1500));
  EXPECT_FALSE(std::filesystem::exists(FailedCheck()));
}

TEST_F(CheckpointTest, TheMarkStaysWithALaterStepThatCannotBeDeleted) {
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  std::filesystem::create_directory(directory_->Path(30));  // unlink fails
  ASSERT_TRUE(directory_->Save(20, {}, {{kAgreedRanksKey, "3"}}).ok());
  EXPECT_TRUE(std::filesystem::exists(FailedCheck()));
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 20);
  std::filesystem::remove(directory_->Path(30));
  ASSERT_TRUE(directory_->Save(21, {}, {{kAgreedRanksKey, "3"}}).ok());
  EXPECT_FALSE(std::filesystem::exists(FailedCheck()));
}

TEST_F(CheckpointTest, OlderCheckpointsWithoutAgreementAreLoaded) {
  Save(1);
  ASSERT_TRUE(directory_->MarkFailedCheck("the weights of rank 1 ...").ok());
  EXPECT_EQ(NewestStep(), 1);
  EXPECT_EQ(LoadNewestCheckpoint(run_)->agreed_ranks(), -1);
  ASSERT_TRUE(directory_->Save(2, {}, {{kAgreedRanksKey, "-1"}}).ok());
  EXPECT_EQ(LoadCheckpoint(directory_->Path(2)).status().code(), StatusCode::kDataLoss);
}

TEST_F(CheckpointTest, WithoutAnIntactCheckpointEachReasonIsNamed) {
  Save(1);
  Save(2);
  Damage(1);
  std::ofstream(directory_->Path(2)) << "x";
  const Status status = LoadNewestCheckpoint(run_).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(directory_->Path(1)), HasSubstr(directory_->Path(2)),
                    HasSubstr("not inside the"), HasSubstr("too few")));
}

TEST_F(CheckpointTest, FileOfAnotherStepUnderThisNameIsRefused) {
  Save(1);
  std::filesystem::copy_file(directory_->Path(1), directory_->Path(7));
  EXPECT_EQ(NewestStep(), 1);
}

TEST_F(CheckpointTest, ForeignFilesAreNoCheckpoints) {
  const std::string foreign = dir_.File("foreign");
  std::ofstream(foreign) << std::string("\2\0\0\0\0\0\0\0{}", 10);
  ASSERT_TRUE(SafetensorsFile::Read(foreign).ok());
  EXPECT_EQ(LoadCheckpoint(foreign).status().code(), StatusCode::kInvalidArgument);
  const std::map<std::string, std::string> bad_step[] = {{}, {{"step", "-1"}}, {{"step", "1x"}}};
  for (const auto& metadata : bad_step) {
    ASSERT_TRUE(WriteSafetensors(foreign, {}, metadata).ok());
    EXPECT_EQ(LoadCheckpoint(foreign).status().code(), StatusCode::kInvalidArgument);
  }
  // Names that only resemble ours are neither loaded nor deleted.
  for (const char* name : {"step-1.safetensors", "step-000000099.safetensors", "step-.safetensors",
                           "step-00000009.safetensors.bak", "step-0000000x.safetensors"}) {
    std::ofstream(run_ + "/checkpoints/" + name) << name;
  }
  Save(1);
  EXPECT_EQ(NewestStep(), 1);
  EXPECT_EQ(ListFolder(run_ + "/checkpoints")->size(), 7u);
}

TEST_F(CheckpointTest, OpenRemovesFilesOfKilledWriters) {
  Save(1);
  for (const char* name : {"/checkpoints/.step-00000002.safetensors.tmp-4", "/.config.tmp-4"}) {
    std::ofstream(run_ + name) << "torn";
  }
  Open();
  EXPECT_THAT(*ListFolder(run_), ElementsAre("checkpoints", "lock"));
  EXPECT_THAT(*ListFolder(run_ + "/checkpoints"),
              ElementsAre(testing::HasSubstr(".rank-0-of-1."), "step-00000001.safetensors"));
}

TEST_F(CheckpointTest, FileInPlaceOfTheFolderIsAnErrorThatNamesIt) {
  std::filesystem::remove_all(run_ + "/checkpoints");
  std::ofstream(run_ + "/checkpoints") << "not a folder";
  const Status saved = SaveTestCheckpoint(&*directory_, 1);
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.message(), HasSubstr(run_ + "/checkpoints"));
  EXPECT_FALSE(CheckpointDirectory::Open(*lock_).ok());
  EXPECT_FALSE(LoadNewestCheckpoint(run_).ok());
}

}  // namespace
}  // namespace ringtail
