// Parts of checkpoints, written and read by ranks that see the folder and by ranks that do not.
#include "apps/trainer/checkpoint/part_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <optional>

#include "core/storage/file.h"
#include "tests/apps/trainer/thread_world.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::HasSubstr;

// More than two pieces, and not a whole number of pieces.
constexpr int64_t kValues = 5 * PartExchange::kPieceBytes / 8 + 7;

std::vector<float> OwnOf(int rank) {
  std::vector<float> own(kValues);
  for (int64_t i = 0; i < kValues; ++i) own[i] = static_cast<float>(i % 1000 + 1000 * rank);
  return own;
}

class PartExchangeTest : public testing::TestWithParam<std::vector<int>> {
 protected:
  void SetUp() override {
    lock_.emplace(RunLock::Acquire(dir_.File("run")).value());
    directory_.emplace(CheckpointDirectory::Open(*lock_).value());
  }
  SeesFile Sees(int rank) const {
    return [blind = std::ranges::count(GetParam(), rank) > 0](const std::string& path) {
      return !blind && FileIsThere(path);
    };
  }
  const CheckpointDirectory* Directory(const TrainingWorld* world) const {
    return world->leads() ? &*directory_ : nullptr;
  }
  void Save(int size, int64_t step) {
    OnTrainingRanks(size, [&](TrainingWorld* world) {
      auto exchange = PartExchange::Create(world, Directory(world), Sees(world->rank()));
      ASSERT_TRUE(exchange.ok()) << exchange.status().message();
      EXPECT_EQ((*exchange)->blind(), GetParam());
      const std::vector<float> own = OwnOf(world->rank());
      const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
      const auto written = (*exchange)->Write(step, tensors, Directory(world));
      ASSERT_TRUE(written.ok()) << written.status().message();
      ASSERT_TRUE(written->status.ok()) << written->status.message();
      if (!world->leads()) return;
      const Status saved = directory_->Save(step, {}, {}, 2, &*written->parts);
      ASSERT_TRUE(saved.ok()) << saved.message();
    });
  }

  const TempDir dir_;
  std::optional<RunLock> lock_;
  std::optional<CheckpointDirectory> directory_;
};

TEST_P(PartExchangeTest, EachRankFindsWhatItNeedsInAnyWorld) {
  constexpr int kSaved = 4;
  Save(kSaved, 9);
  EXPECT_EQ(ListFolder(directory_->folder())->size(), kSaved + 1U) << "the probe is gone";
  const Checkpoint checkpoint = LoadNewestCheckpoint(dir_.File("run")).value();
  // Ranks of the new world, and the one that has read the checkpoint.
  const std::pair<int, int> worlds[] = {{1, 0}, {3, 0}, {3, 2}, {4, 0}, {4, 1}, {6, 0}, {6, 5}};
  for (const auto& [ranks, reads] : worlds) {
    const int size = ranks, source = reads;
    OnTrainingRanks(size, [&](TrainingWorld* world) {
      const int rank = world->rank();
      std::vector<int> taken;
      uint64_t moved = 0;
      const PartReader reader{
          .needs = [&](int to, int from, int) { return from % size == to; },
          .take = [&](const SafetensorsFile& part, int from, int saved_world) -> Status {
            EXPECT_EQ(saved_world, kSaved);
            EXPECT_TRUE(std::ranges::equal(part.F32("own", {kValues}).value(), OwnOf(from)));
            const uint64_t now = world->progress()->Read().counter;
            EXPECT_TRUE(taken.empty() || now > moved) << "a rank that reads is not one that hangs";
            moved = now;
            taken.push_back(from);
            return OkStatus();
          }};
      const SavedParts saved = rank == source ? PartsOf(checkpoint) : SavedParts();
      const Status status = ReadParts(world, saved, source, reader, Sees(rank));
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<int> expected;
      for (int from = rank; from < kSaved; from += size) expected.push_back(from);
      EXPECT_EQ(taken, expected) << "rank " << rank << " of " << size;
    });
  }
}

// Something else has taken the place of the folder: no rank can write, all know it, the world goes
// on.
TEST_P(PartExchangeTest, AWriteThatFailsIsToldToAll) {
  OnTrainingRanks(4, [&](TrainingWorld* world) {
    auto exchange = PartExchange::Create(world, Directory(world), Sees(world->rank()));
    ASSERT_TRUE(exchange.ok());
    ASSERT_TRUE(world->Barrier().ok());
    if (world->leads()) {
      std::filesystem::remove_all(directory_->folder());
      ASSERT_TRUE(WriteFileAtomic(directory_->folder(), "in the way").ok());
    }
    const std::vector<float> own = OwnOf(world->rank());
    const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
    const auto written = (*exchange)->Write(1, tensors, Directory(world));
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_THAT(written->status.message(), HasSubstr("rank 0 cannot write to the folder of "
                                                     "the run: cannot make the folder"));
    EXPECT_TRUE(world->Barrier().ok());
  });
}

// The folder is renamed meanwhile (core/storage/run_lock.h): rank 0 follows it, and so do the
// parts.
TEST_P(PartExchangeTest, PartsFollowTheFolderOfTheRun) {
  OnTrainingRanks(4, [&](TrainingWorld* world) {
    auto exchange = PartExchange::Create(world, Directory(world), Sees(world->rank()));
    ASSERT_TRUE(exchange.ok());
    ASSERT_TRUE(world->Barrier().ok());
    if (world->leads()) std::filesystem::rename(dir_.File("run"), dir_.File("old"));
    const std::vector<float> own = OwnOf(world->rank());
    const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
    const auto written = (*exchange)->Write(1, tensors, Directory(world));
    ASSERT_TRUE(written.ok() && written->status.ok()) << written->status.message();
    if (!world->leads()) return;
    const Status saved = directory_->Save(1, {}, {}, 2, &*written->parts);
    EXPECT_TRUE(saved.ok()) << saved.message();
    EXPECT_EQ(ListFolder(dir_.File("old/checkpoints"))->size(), 5U);
    EXPECT_FALSE(std::filesystem::exists(dir_.File("run")));
  });
}

// The folder is renamed and another run takes its name while the ranks look for it: no part is
// written there, not even by a rank that had already found the probe.
TEST_P(PartExchangeTest, NoPartGetsIntoTheFolderOfAnotherRun) {
  constexpr int kMover = 1;
  std::atomic<bool> saving = false;
  OnTrainingRanks(4, [&](TrainingWorld* world) {
    const int rank = world->rank();
    const SeesFile sees = [&, rank](const std::string& path) {
      const bool found = Sees(rank)(path);
      if (saving && rank == kMover) {
        std::filesystem::rename(dir_.File("run"), dir_.File("old"));
        std::filesystem::create_directories(dir_.File("run/checkpoints"));
      }
      return found;
    };
    auto exchange = PartExchange::Create(world, Directory(world), sees);
    ASSERT_TRUE(exchange.ok());
    ASSERT_TRUE(world->Barrier().ok());
    saving = true;
    ASSERT_TRUE(world->Barrier().ok());
    const std::vector<float> own = OwnOf(rank);
    const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
    const auto written = (*exchange)->Write(1, tensors, Directory(world));
    ASSERT_TRUE(written.ok() && written->status.ok()) << written->status.message();
    EXPECT_THAT((*exchange)->blind(), Contains(kMover));
    if (!world->leads()) return;
    EXPECT_EQ(ListFolder(dir_.File("run/checkpoints"))->size(), 0U);
    // The other folder is a run's, which has files: rank 0 follows its own.
    const Status saved = directory_->Save(1, {}, {}, 2, &*written->parts);
    EXPECT_TRUE(saved.ok()) << saved.message();
    EXPECT_EQ(ListFolder(dir_.File("old/checkpoints"))->size(), 5U);
    EXPECT_EQ(ListFolder(dir_.File("run/checkpoints"))->size(), 0U);
  });
}

// A part that could not be read again: no rank writes, and all know whose it is.
TEST_P(PartExchangeTest, APartThatIsNotFiniteIsNotWritten) {
  constexpr int kBad = 2;
  OnTrainingRanks(4, [&](TrainingWorld* world) {
    auto exchange = PartExchange::Create(world, Directory(world), Sees(world->rank()));
    ASSERT_TRUE(exchange.ok());
    std::vector<float> own = OwnOf(world->rank());
    if (world->rank() == kBad) own.back() = std::numeric_limits<float>::infinity();
    const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
    const auto written = (*exchange)->Write(1, tensors, Directory(world));
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_EQ(written->status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(written->status.message(), "rank 2: 'own' has a NaN or infinity");
    EXPECT_FALSE(written->parts.has_value());
    EXPECT_TRUE(world->Barrier().ok());
  });
  EXPECT_EQ(ListFolder(directory_->folder())->size(), 0U);
}

// Rank 0 has lost its folder: no rank writes, and all know it.
TEST_P(PartExchangeTest, WithoutAFolderNothingIsWritten) {
  OnTrainingRanks(3, [&](TrainingWorld* world) {
    auto exchange = PartExchange::Create(world, Directory(world), Sees(world->rank()));
    ASSERT_TRUE(exchange.ok());
    const std::vector<float> own = OwnOf(world->rank());
    const TensorView tensors[] = {ViewF32("own", {kValues}, own)};
    const auto written = (*exchange)->Write(1, tensors, nullptr);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->status.code(), StatusCode::kFailedPrecondition);
    ASSERT_TRUE(world->Barrier().ok());
  });
  EXPECT_EQ(ListFolder(directory_->folder())->size(), 0U);
}

TEST_P(PartExchangeTest, APartThatHasChangedMeanwhileIsNamed) {
  Save(4, 9);
  const Checkpoint checkpoint = LoadNewestCheckpoint(dir_.File("run")).value();
  const std::string part = checkpoint.PartPath(3);
  std::string bytes = *ReadFileText(part, 1 << 24);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(WriteFileAtomic(part, bytes).ok());
  OnTrainingRanks(4, [&](TrainingWorld* world) {
    const PartReader reader{.needs = [](int to, int from, int) { return from == to; },
                            .take = [](const SafetensorsFile&, int, int) { return OkStatus(); }};
    const SavedParts saved = world->leads() ? PartsOf(checkpoint) : SavedParts();
    const Status status = ReadParts(world, saved, 0, reader, Sees(world->rank()));
    if (world->rank() != 3) return;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(part));
    world->Abort(status);
  });
}

INSTANTIATE_TEST_SUITE_P(Blind, PartExchangeTest,
                         testing::Values(std::vector<int>{}, std::vector<int>{2},
                                         std::vector<int>{1, 2, 3}),
                         [](const auto& info) { return std::to_string(info.param.size()); });

}  // namespace
}  // namespace ringtail
