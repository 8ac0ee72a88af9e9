// A checkpoint with parts is complete or refused with the name of the part; parts live as long as
// the checkpoints that name them.
#include "core/storage/checkpoint_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/logging.h"
#include "core/storage/checkpoint.h"
#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kRanks = 3;

class CheckpointPartsTest : public testing::Test {
 protected:
  void SetUp() override {
    lock_.emplace(RunLock::Acquire(run_).value());
    directory_.emplace(CheckpointDirectory::Open(*lock_).value());
  }
  // Each rank has three numbers.
  CheckpointParts WriteParts(int64_t step) {
    CheckpointParts parts{DrawPartTag(), {}};
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> own = {1.0F * rank, 2, static_cast<float>(step)};
      const TensorView tensors[] = {ViewF32("own", {3}, own)};
      const SafetensorsImage image = SerializeSafetensors(tensors, {}).value();
      parts.ranks.push_back(SummaryOf(image));
      const std::string name = PartName(step, rank, kRanks, parts.tag);
      RT_CHECK(WriteFileAtomic(directory_->folder() + "/" + name, image.Pieces()).ok(), name);
    }
    return parts;
  }
  void Save(int64_t step) {
    const CheckpointParts parts = WriteParts(step);
    const Status saved = directory_->Save(step, {}, {}, 2, &parts);
    ASSERT_TRUE(saved.ok()) << saved.message();
  }
  std::vector<std::string> PartsOnDisk() const {
    std::vector<std::string> names = *ListFolder(directory_->folder());
    std::erase_if(names, [](const std::string& name) { return !ParsePartName(name); });
    return names;
  }
  std::string PathOfPart(int64_t step, int rank) const {
    return LoadCheckpoint(directory_->Path(step), CheckParts::kNo)->PartPath(rank);
  }

  const TempDir dir_;
  const std::string run_ = dir_.File("run");
  std::optional<RunLock> lock_;
  std::optional<CheckpointDirectory> directory_;
};

TEST_F(CheckpointPartsTest, EachRankReadsItsOwn) {
  Save(7);
  const Checkpoint checkpoint = LoadNewestCheckpoint(run_).value();
  ASSERT_TRUE(checkpoint.parts);
  ASSERT_EQ(checkpoint.parts->world(), kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto part = ReadPart(checkpoint.PartPath(rank), checkpoint.parts->ranks[rank]);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_THAT(*part->F32("own", {3}), ElementsAre(rank, 2, 7));
  }
}

TEST_F(CheckpointPartsTest, AMissingOrDamagedPartIsNamedAndThePreviousCheckpointIsLoaded) {
  for (const bool missing : {true, false}) {
    Save(1);
    Save(2);
    const std::string part = PathOfPart(2, 1);
    if (missing) {
      std::filesystem::remove(part);
    } else {
      std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);
      file.put('x');
    }
    const Status status = LoadCheckpoint(directory_->Path(2)).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("'" + part + "'"));
    EXPECT_THAT(status.message(), HasSubstr(missing ? "is missing" : "is damaged"));
    EXPECT_TRUE(LoadCheckpoint(directory_->Path(2), CheckParts::kNo).ok()) << "it has the weights";
    testing::internal::CaptureStderr();
    EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(part));
  }
}

TEST_F(CheckpointPartsTest, EveryByteOfAPartCounts) {
  Save(1);
  const Checkpoint checkpoint = LoadNewestCheckpoint(run_).value();
  const std::string path = checkpoint.PartPath(2);
  const std::string good = *ReadFileText(path, 1 << 20);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    ASSERT_FALSE(CheckPart(path, checkpoint.parts->ranks[2]).ok()) << i;
    ASSERT_FALSE(ReadPart(path, checkpoint.parts->ranks[2]).ok()) << i;
  }
  for (const std::string& bad : {good + "x", good.substr(1), std::string()}) {
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(CheckPart(path, checkpoint.parts->ranks[2]).ok());
    EXPECT_FALSE(ReadPart(path, checkpoint.parts->ranks[2]).ok());
  }
}

// Those who watch the reader see it move, however many parts there are.
TEST_F(CheckpointPartsTest, AReaderTellsOfEveryPart) {
  Save(1);
  int pieces = 0;
  const auto count = [&] { ++pieces; };
  EXPECT_TRUE(LoadCheckpoint(directory_->Path(1), CheckParts::kYes, count).ok());
  EXPECT_EQ(pieces, kRanks);  // each of less than a MiB
  EXPECT_TRUE(LoadNewestCheckpoint(run_, CheckParts::kYes, count).ok());
  EXPECT_EQ(pieces, 2 * kRanks);
}

TEST_F(CheckpointPartsTest, AreDeletedWithTheirCheckpoint) {
  for (const int64_t step : {1, 2, 3}) Save(step);
  EXPECT_THAT(*directory_->Steps(), ElementsAre(2, 3));
  EXPECT_THAT(PartsOnDisk(), SizeIs(2 * kRanks));
  EXPECT_TRUE(LoadCheckpoint(directory_->Path(2)).ok());
}

// Resuming from the best checkpoint needs them.
TEST_F(CheckpointPartsTest, OfTheBestCheckpointStayAsLongAsIt) {
  Save(1);
  ASSERT_TRUE(directory_->SaveBest(1).ok());
  for (const int64_t step : {2, 3}) Save(step);
  EXPECT_THAT(PartsOnDisk(), SizeIs(3 * kRanks));
  const auto best = LoadCheckpoint(BestCheckpointPath(run_));
  EXPECT_TRUE(best.ok()) << best.status().message();
  ASSERT_TRUE(directory_->SaveBest(3).ok());
  EXPECT_THAT(PartsOnDisk(), SizeIs(2 * kRanks));
}

TEST_F(CheckpointPartsTest, OfAnInterruptedSaveAreDeletedAtOpen) {
  Save(1);
  WriteParts(1);  // of the same step, by a killed run
  WriteParts(2);
  EXPECT_THAT(PartsOnDisk(), SizeIs(3 * kRanks));
  directory_.emplace(CheckpointDirectory::Open(*lock_).value());
  EXPECT_THAT(PartsOnDisk(), SizeIs(kRanks));
  EXPECT_TRUE(LoadNewestCheckpoint(run_).ok());
}

TEST_F(CheckpointPartsTest, SavingAStepAgainNeverTouchesExistingParts) {
  Save(1);
  const Checkpoint before = LoadNewestCheckpoint(run_).value();
  const CheckpointParts parts = WriteParts(1);
  EXPECT_TRUE(LoadNewestCheckpoint(run_).ok()) << "killed here, the old one is whole";
  ASSERT_TRUE(directory_->Save(1, {}, {}, 2, &parts).ok());
  EXPECT_EQ(LoadNewestCheckpoint(run_)->parts, parts);
  EXPECT_FALSE(std::filesystem::exists(before.PartPath(0)));
}

TEST_F(CheckpointPartsTest, ASaveWithAMissingPartIsRefused) {
  Save(1);
  const CheckpointParts parts = WriteParts(2);
  std::filesystem::remove(directory_->folder() + "/" + PartName(2, 1, kRanks, parts.tag));
  const Status status = directory_->Save(2, {}, {}, 2, &parts);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("rank-1-of-3"));
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 1);
  EXPECT_THAT(PartsOnDisk(), SizeIs(kRanks)) << "the others are of no use";
}

TEST(PartNameTest, IsParsedStrictly) {
  EXPECT_EQ(PartName(100, 1, 4, "5e1f03ba"), "step-00000100.rank-1-of-4.5e1f03ba.safetensors");
  EXPECT_EQ(ParsePartName("step-00000100.rank-1-of-4.5e1f03ba.safetensors"),
            (PartOf{100, "5e1f03ba"}));
  for (const char* other :
       {"step-00000100.safetensors", "step-100.rank-1-of-4.5e1f03ba.safetensors",
        "step-00000100.rank--1-of-4.5e1f03ba.safetensors", "best.safetensors", "",
        "step-00000100.rank-1-of-4.5e1f03b.safetensors", "step-00000100.rank-1-of-4.safetensors",
        ".step-00000100.rank-1-of-4.5e1f03ba.safetensors.tmp-7"}) {
    EXPECT_FALSE(ParsePartName(other)) << other;
  }
}

TEST(PartsTextTest, IsParsedStrictly) {
  const CheckpointParts parts{"5e1f03ba", {{123, 7}, {0, 0xffffffffU}}};
  EXPECT_EQ(PartsText(parts), "5e1f03ba 123:00000007 0:ffffffff");
  EXPECT_EQ(*ParsePartsText(PartsText(parts)), parts);
  for (const char* text :
       {"", "5e1f03ba", "5e1f03b 1:00000007", "5e1f03ba 1:0000007", "5e1f03ba -1:00000007",
        "5e1f03ba 1:00000007 ", "5e1f03ba  1:00000007", "5e1f03ba 99999999999999999999:00000007"}) {
    EXPECT_EQ(ParsePartsText(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace ringtail
