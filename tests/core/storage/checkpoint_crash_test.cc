// A run that is killed, or whose disk fails, at any instant of a save resumes from a valid
// checkpoint, never from one older than the last one reported as durable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "core/storage/file.h"
#include "tests/core/checkpoint_content.h"
#include "tests/testing/process.h"
#include "tests/testing/system_call_faults.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kWriter = std::string(RT_BINARY_DIR) + "/tests/core_checkpoint_writer_main";

// The last N of "durable N" in the output of the writer; 0: none.
int64_t LastDurable(const std::string& out) {
  constexpr std::string_view kMark = "durable ";
  const size_t at = out.rfind(kMark);
  return at == std::string::npos ? 0 : std::stoll(out.substr(at + kMark.size()));
}

// The step of the checkpoint that a run would resume from, whose content is checked; 0: none.
int64_t NewestStep(const std::string& run) {
  const StatusOr<Checkpoint> newest = LoadNewestCheckpoint(run);
  if (!newest.ok()) {
    EXPECT_EQ(newest.status().code(), StatusCode::kNotFound) << newest.status().ToString();
    return 0;
  }
  EXPECT_TRUE(HoldsItsStep(*newest)) << newest->path;
  return newest->step;
}

std::vector<std::string> TemporaryFiles(const std::string& run) {
  std::vector<std::string> names = *ListFolder(run + "/checkpoints");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with('.'); });
  return names;
}

// A copy, per fault, of a run that has saved steps 1 and 2.
class SavedRun {
 public:
  SavedRun() { EXPECT_EQ(RunProcess({kWriter, run(), "2"}).exit_code, 0); }
  std::string run() const { return dir_.File("run"); }
  std::vector<std::string> SaveOnce() const { return {kWriter, run(), "1"}; }
  bool BestIsIntact() const {
    const StatusOr<Checkpoint> best = LoadCheckpoint(BestCheckpointPath(run()));
    return best.ok() && HoldsItsStep(*best);
  }

 private:
  const TempDir dir_;
};

std::vector<SystemCall> CallsOfOneSave() {
  return FileCallsBetween(SavedRun().SaveOnce(), "saving", "durable");
}

// The number of `calls` up to and including the rename of the new checkpoint, which follows that of
// its part.
size_t CallsBeforeCommit(const std::vector<SystemCall>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool of_part = calls[i].as_shown.find("rank-0-of-1") != std::string::npos;
    if (calls[i].name.starts_with("rename") && !of_part) return i + 1;
  }
  ADD_FAILURE() << "a save without rename";
  return 0;
}

TEST(CheckpointCrashTest, KilledFiftyTimesAtRandomMoments) {
  const TempDir dir;
  const std::string run = dir.File("run");
  Rng rng(RngKey(1).With(kTestStream));
  int64_t durable = 0;
  for (int kill = 0; kill < 50; ++kill) {
    ChildProcess writer({kWriter, run, "1000000"});
    // A few saves or none, and then a part of one.
    const uint64_t lines = rng.Below(8);
    for (uint64_t line = 0; line < lines; ++line) ASSERT_TRUE(writer.ReadLine().has_value());
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(3000)));
    writer.Signal(SIGKILL);
    const ProcessResult result = writer.Wait();
    ASSERT_EQ(result.signal, SIGKILL) << result.out << result.err;
    durable = std::max(durable, LastDurable(result.out));
    ASSERT_GE(NewestStep(run), durable) << "after kill " << kill;
  }
  EXPECT_GE(durable, 50) << "too few saves for the kills to mean anything";
  EXPECT_EQ(RunProcess({kWriter, run, "1"}).exit_code, 0);
  EXPECT_THAT(TemporaryFiles(run), ElementsAre());
}

TEST(CheckpointCrashTest, KilledAtEverySystemCallOfASave) {
  const std::vector<SystemCall> calls = CallsOfOneSave();
  const size_t before_commit = CallsBeforeCommit(calls);
  ASSERT_GE(before_commit, 5u);  // open, write, fsync, close, rename at the very least
  ASSERT_GT(calls.size(), before_commit);
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE("killed at call " + std::to_string(i) + ": " + calls[i].as_shown);
    const SavedRun saved;
    const ProcessResult killed = RunWithFault(saved.SaveOnce(), calls[i], "signal=KILL");
    ASSERT_EQ(killed.signal, SIGKILL) << killed.out << killed.err;
    ASSERT_THAT(killed.out, HasSubstr("saving 3"));
    ASSERT_THAT(killed.out, Not(HasSubstr("durable")));
    const int64_t newest = NewestStep(saved.run());
    EXPECT_EQ(newest, i < before_commit ? 2 : 3);
    EXPECT_TRUE(saved.BestIsIntact());

    const ProcessResult resumed = RunProcess(saved.SaveOnce());
    EXPECT_EQ(resumed.exit_code, 0) << resumed.out << resumed.err;
    EXPECT_EQ(NewestStep(saved.run()), newest + 1);
    EXPECT_THAT(TemporaryFiles(saved.run()), ElementsAre());
  }
}

// Covers power cuts, which a kill cannot: the kernel may write to the disk in another order than
// the program, except across an fsync.
TEST(CheckpointCrashTest, OldFilesAreDeletedOnlyOnceTheNewOneIsOnTheDisk) {
  std::string order;
  for (const SystemCall& call : CallsOfOneSave()) {
    const bool counts = call.name == "write" || call.name == "fsync" || call.name == "rename" ||
                        (call.name == "unlink" && call.as_shown.ends_with("= 0"));
    if (counts && !order.ends_with(call.name + " ")) order += call.name + " ";
  }
  EXPECT_EQ(order,
            "write fsync rename fsync "  // the part and its name
            "write fsync rename fsync "  // the checkpoint and its name
            "unlink "                    // the oldest, and its part
            "rename fsync ");            // best
}

// The new checkpoint failed: one clear error, everything else is unchanged.
void ExpectCleanFailure(const SavedRun& saved, const ProcessResult& failed,
                        std::string_view reason) {
  EXPECT_EQ(failed.exit_code, 1) << failed.out << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("error "));
  EXPECT_THAT(failed.out, HasSubstr(saved.run() + "/checkpoints"));
  EXPECT_THAT(failed.out, HasSubstr(std::string(reason)));
  EXPECT_EQ(NewestStep(saved.run()), 2);
  EXPECT_TRUE(std::filesystem::exists(saved.run() + "/checkpoints/step-00000001.safetensors"));
  EXPECT_TRUE(saved.BestIsIntact());
  EXPECT_THAT(TemporaryFiles(saved.run()), ElementsAre());
}

TEST(CheckpointCrashTest, EverySystemCallBeforeTheCommitFails) {
  const std::pair<const char*, const char*> kErrors[] = {{"ENOSPC", "No space left on device"},
                                                         {"EIO", "Input/output error"},
                                                         {"EROFS", "Read-only file system"},
                                                         {"EDQUOT", "Disk quota exceeded"}};
  const std::vector<SystemCall> calls = CallsOfOneSave();
  std::set<std::string> names;
  for (size_t i = 0; i < CallsBeforeCommit(calls); ++i) {
    // The fsync of the folder after the part's rename: nothing is lost if it fails.
    const bool closes_folder =
        calls[i].name == "close" && calls[i - 1].name == "fsync" && calls[i - 2].name == "rename";
    if (closes_folder) continue;
    for (const auto& [error, text] : kErrors) {
      SCOPED_TRACE(std::string(error) + " at " + calls[i].as_shown);
      const SavedRun saved;
      const ProcessResult failed =
          RunWithFault(saved.SaveOnce(), calls[i], "error=" + std::string(error));
      ExpectCleanFailure(saved, failed, text);
      names.insert(calls[i].name);
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"write", "fsync", "close"}));
}

TEST(CheckpointCrashTest, EverySystemCallAfterTheCommitFails) {
  const std::vector<SystemCall> calls = CallsOfOneSave();
  for (size_t i = CallsBeforeCommit(calls); i < calls.size(); ++i) {
    SCOPED_TRACE("EIO at " + calls[i].as_shown);
    const SavedRun saved;
    const ProcessResult result = RunWithFault(saved.SaveOnce(), calls[i], "error=EIO");
    // Cleaning up may fail without an error, updating the best checkpoint may not; the new
    // checkpoint exists.
    EXPECT_THAT(result.exit_code, AnyOf(0, 1)) << result.out << result.err;
    EXPECT_EQ(result.exit_code == 0, LastDurable(result.out) == 3) << result.out;
    EXPECT_EQ(NewestStep(saved.run()), 3);
    EXPECT_TRUE(saved.BestIsIntact());
    if (calls[i].name == "fsync") {
      EXPECT_THAT(result.out, HasSubstr("Input/output error"));
    }
  }
}

TEST(CheckpointCrashTest, InterruptedSystemCallsAreRepeated) {
  int interrupted = 0;
  for (const SystemCall& call : CallsOfOneSave()) {
    if (call.name != "openat" && call.name != "write" && call.name != "fsync" &&
        call.name != "close") {
      continue;
    }
    SCOPED_TRACE(call.as_shown);
    const SavedRun saved;
    const ProcessResult result = RunWithFault(saved.SaveOnce(), call, "error=EINTR");
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(NewestStep(saved.run()), 3);
    ++interrupted;
  }
  EXPECT_GE(interrupted, 6);
}

TEST(CheckpointCrashTest, TheFileSizeLimitIsAnErrorAndDoesNotEndTheProcess) {
  const SavedRun saved;
  std::vector<std::string> limited = saved.SaveOnce();
  limited.emplace_back("10000");  // in the middle of the weights: the write up to there is short
  ExpectCleanFailure(saved, RunProcess(limited), "File too large");
  EXPECT_EQ(RunProcess(saved.SaveOnce()).exit_code, 0);
  EXPECT_EQ(NewestStep(saved.run()), 3);
}

TEST(CheckpointCrashTest, FileInPlaceOfTheRunFolderOrItsCheckpoints) {
  for (const char* blocked : {"", "/checkpoints"}) {
    const TempDir dir;
    const std::string path = dir.File("run") + blocked;
    ASSERT_TRUE(MakeDirectories(std::filesystem::path(path).parent_path().string()).ok());
    ASSERT_TRUE(WriteFileAtomic(path, "not a folder").ok());
    const ProcessResult failed = RunProcess({kWriter, dir.File("run"), "1"});
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.out, HasSubstr("cannot make the folder '" + path + "'"));
    EXPECT_EQ(*ReadFileText(path, 100), "not a folder");
  }
}

TEST(CheckpointCrashTest, SecondWriterIsRefused) {
  const SavedRun saved;
  ChildProcess first({kWriter, saved.run(), "1000000"});
  ASSERT_EQ(first.ReadLine(), "saving 3");
  const ProcessResult second = RunProcess(saved.SaveOnce());
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.out, HasSubstr("error AlreadyExists: "));
  EXPECT_THAT(second.out, HasSubstr("process " + std::to_string(first.pid()) + " on host "));
}

}  // namespace
}  // namespace ringtail
