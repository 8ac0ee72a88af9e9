// A run whose folder is renamed or deleted during training, and the next run of that name: each
// keeps its own files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "apps/trainer/checkpoint/final_network.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "core/storage/file.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMoment = 7;  // within the second of four epochs

const std::vector<std::string> kFiles = {"checkpoints", "config.textproto", "final.safetensors",
                                         "lock",        "metrics.jsonl",    "tensorboard"};

std::string Text(const std::string& path) { return ReadFileText(path, 1 << 20).value(); }

class MovedRunTest : public testing::Test {
 protected:
  // Trains in `run_` and calls `at_the_moment` after step kMoment.
  StatusOr<TrainingOutcome> Train(const std::function<void()>& at_the_moment) const {
    StepHook hook([&](int64_t step) {
      if (step == kMoment) at_the_moment();
    });
    return TrainTiny(TinyConfig(), run_, /*resume=*/false, &hook);
  }
  // Another run, under the name of the first.
  void TrainNext() const {
    ASSERT_TRUE(TrainTiny(TinyConfig({"train.seed=9", "train.epochs=1"}), run_).ok());
  }
  void ExpectTheNextRun() const {
    ASSERT_TRUE(TrainTiny(TinyConfig({"train.seed=9", "train.epochs=1"}), dir_.File("ref")).ok());
    EXPECT_EQ(ReadTensors(run_ + "/final.safetensors"),
              ReadTensors(dir_.File("ref/final.safetensors")));
    EXPECT_EQ(LoadNewestCheckpoint(run_)->step, kTinyStepsPerEpoch);
    EXPECT_EQ(*ListFolder(run_ + "/checkpoints"), *ListFolder(dir_.File("ref/checkpoints")));
    EXPECT_THAT(Text(run_ + "/config.textproto"), HasSubstr("seed: 9"));
    EXPECT_EQ(*ListFolder(run_), kFiles);
  }
  void ExpectTheRunLeftAlone(const std::string& final_path) const {
    ASSERT_TRUE(TrainTiny(TinyConfig(), dir_.File("alone")).ok());
    EXPECT_EQ(ReadTensors(final_path), ReadTensors(dir_.File("alone/final.safetensors")));
  }

  const TempDir dir_;
  const std::string run_ = dir_.File("run");
};

TEST_F(MovedRunTest, ARenamedFolderKeepsItsRunAndTheNextRunItsOwn) {
  const auto outcome = Train([&] {
    fs::rename(run_, dir_.File("old"));
    TrainNext();
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_THAT(outcome->message, HasSubstr("network in " + dir_.File("old/final.safetensors")));
  ExpectTheNextRun();
  ExpectTheRunLeftAlone(dir_.File("old/final.safetensors"));
  EXPECT_EQ(*ListFolder(dir_.File("old")), kFiles);
  EXPECT_EQ(LoadNewestCheckpoint(dir_.File("old"))->step, 4 * kTinyStepsPerEpoch);
  const std::string metrics = Text(dir_.File("old/metrics.jsonl"));
  for (const char* step : {"\"step\":1,", "\"step\":20,"}) EXPECT_THAT(metrics, HasSubstr(step));
}

TEST_F(MovedRunTest, ADeletedFolderIsMadeAgain) {
  const auto outcome = Train([&] { fs::remove_all(run_); });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  ExpectTheRunLeftAlone(run_ + "/final.safetensors");
  EXPECT_EQ(*ListFolder(run_), kFiles);
  EXPECT_EQ(LoadNewestCheckpoint(run_)->step, 4 * kTinyStepsPerEpoch);
  EXPECT_EQ(Text(run_ + "/config.textproto"), Text(dir_.File("alone/config.textproto")));
  EXPECT_THAT(Text(run_ + "/metrics.jsonl"), HasSubstr("\"step\":20,"));
}

// It writes nothing into the next run; its network is elsewhere, and the error says where.
TEST_F(MovedRunTest, ADeletedFolderWhoseNameIsTakenGetsNothing) {
  const TempDir elsewhere;
  const char* const set = std::getenv("TMPDIR");
  const std::string before = set != nullptr ? set : "";
  setenv("TMPDIR", elsewhere.path().c_str(), 1);
  const auto outcome = Train([&] {
    fs::remove_all(run_);
    TrainNext();
  });
  set != nullptr ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.status().message(), HasSubstr("something else has its name now"));
  const auto folders = ListFolder(elsewhere.path());
  ASSERT_TRUE(folders.ok() && folders->size() == 1);
  const std::string network = elsewhere.File(folders->front() + "/final.safetensors");
  EXPECT_THAT(outcome.status().message(), HasSubstr("the trained network is in '" + network + "'"));
  ExpectTheNextRun();
  ExpectTheRunLeftAlone(network);
}

class FinalNetworkTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = RunDirectory::Open(dir_.File("run")).value(); }
  // Fails `times` times, then writes.
  NetworkWriter FailsFirst(int times) {
    return [this, times](const std::string& path) {
      paths_.push_back(path);
      if (static_cast<int>(paths_.size()) <= times) return ResourceExhausted("no space left");
      return WriteFileAtomic(path, "network");
    };
  }

  const TempDir dir_, other_;
  const FinalNetworkOptions quick_{.patience = std::chrono::milliseconds(50),
                                   .pause = std::chrono::milliseconds(1),
                                   .other_places = {dir_.File("none"), other_.path()}};
  std::unique_ptr<RunDirectory> directory_;
  std::vector<std::string> paths_;
};

TEST_F(FinalNetworkTest, TriesUntilThereIsRoom) {
  FinalNetworkOptions patient = quick_;
  patient.patience = std::chrono::hours(1);
  EXPECT_TRUE(WriteFinalNetwork(directory_.get(), FailsFirst(3), patient).ok());
  EXPECT_EQ(Text(directory_->FinalPath()), "network");
  EXPECT_THAT(*ListFolder(other_.path()), ElementsAre());
}

TEST_F(FinalNetworkTest, GoesElsewhereInTheEndAndSaysWhere) {
  const NetworkWriter full = [&](const std::string& path) {
    return path == directory_->FinalPath() ? ResourceExhausted("no space left")
                                           : WriteFileAtomic(path, "network");
  };
  const Status status = WriteFinalNetwork(directory_.get(), full, quick_);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  const std::string folder = ListFolder(other_.path())->at(0);
  const std::string path = other_.File(folder + "/final.safetensors");
  EXPECT_EQ(Text(path), "network");
  EXPECT_THAT(status.message(), HasSubstr("'" + path + "'"));
  EXPECT_THAT(status.message(), HasSubstr("no space left"));
}

TEST_F(FinalNetworkTest, ASignalEndsTheWaiting) {
  FinalNetworkOptions patient = quick_;
  patient.patience = std::chrono::hours(1);
  patient.stop = [&] { return paths_.size() >= 2; };
  const Status status = WriteFinalNetwork(directory_.get(), FailsFirst(2), patient);
  EXPECT_THAT(status.message(), HasSubstr("'" + other_.path()));
  EXPECT_EQ(paths_.size(), 3U);
}

TEST_F(FinalNetworkTest, SaysSoWhereNothingTakesIt) {
  const Status status = WriteFinalNetwork(directory_.get(), FailsFirst(1 << 30), quick_);
  EXPECT_THAT(status.message(), HasSubstr("the trained network is lost: no space left"));
  EXPECT_THAT(status.message(), HasSubstr("cannot make a folder in '" + dir_.File("none")));
  EXPECT_THAT(*ListFolder(other_.path()), ElementsAre());
}

TEST_F(FinalNetworkTest, MakesADeletedFolderAgain) {
  fs::remove_all(dir_.File("run"));
  EXPECT_TRUE(WriteFinalNetwork(directory_.get(), FailsFirst(0), quick_).ok());
  EXPECT_EQ(Text(dir_.File("run/final.safetensors")), "network");
}

}  // namespace
}  // namespace ringtail
