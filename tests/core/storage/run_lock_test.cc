#include "core/storage/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "core/storage/file.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const std::string kHolder = std::string(RT_BINARY_DIR) + "/tests/core_run_lock_main";

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

TEST(RunLockTest, ASecondRunIsRefusedWithTheNameOfTheHolder) {
  const TempDir dir;
  ChildProcess holder({kHolder, dir.File("run")});
  ASSERT_EQ(holder.ReadLine(), "locked");
  const StatusOr<RunLock> second = RunLock::Acquire(dir.File("run"));
  ASSERT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(),
              HasSubstr("process " + std::to_string(holder.pid()) + " on host " + HostName()));
  EXPECT_THAT(second.status().message(), HasSubstr(dir.File("run")));
}

TEST(RunLockTest, TheLockOfAKilledHolderIsTakenOver) {
  const TempDir dir;
  ChildProcess holder({kHolder, dir.path()});
  ASSERT_EQ(holder.ReadLine(), "locked");
  holder.Signal(SIGKILL);
  ASSERT_EQ(holder.Wait().signal, SIGKILL);
  const StatusOr<std::string> left = ReadFileText(dir.File("lock"), 4096);
  ASSERT_TRUE(left.ok());
  EXPECT_THAT(*left, HasSubstr("@")) << "the dead holder must have left its name";
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.path());
  ASSERT_TRUE(lock.ok()) << lock.status().ToString();
  EXPECT_EQ(*ReadFileText(dir.File("lock"), 4096), std::to_string(getpid()) + "@" + HostName());
}

TEST(RunLockTest, ReleasedWithItsOwner) {
  const TempDir dir;
  std::optional<RunLock> kept;
  {
    StatusOr<RunLock> lock = RunLock::Acquire(dir.path());
    ASSERT_TRUE(lock.ok());
    kept.emplace(*std::move(lock));
  }
  EXPECT_EQ(kept->run_folder(), dir.path());
  EXPECT_EQ(RunLock::Acquire(dir.path()).status().code(), StatusCode::kAlreadyExists)
      << "moving a lock must not release it";
  kept.reset();
  EXPECT_TRUE(RunLock::Acquire(dir.path()).ok());
}

TEST(RunLockTest, AHolderWithoutANameIsAnotherProcess) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.path());
  ASSERT_TRUE(lock.ok());
  std::filesystem::resize_file(dir.File("lock"), 0);
  EXPECT_THAT(RunLock::Acquire(dir.path()).status().message(), HasSubstr("by another process;"));
}

TEST(RunLockTest, FindsItsFolder) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.File("run"));
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(*lock->Folder(), dir.File("run"));
  EXPECT_EQ(lock->times_remade(), 0);
}

// The renamed folder of a run, and the next run of that name.
TEST(RunLockTest, FollowsARenamedFolderAlthoughAnotherHasItsName) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.File("run"));
  ASSERT_TRUE(lock.ok());
  std::filesystem::rename(dir.File("run"), dir.File("old"));
  EXPECT_EQ(*lock->Folder(), dir.File("old"));
  const StatusOr<RunLock> next = RunLock::Acquire(dir.File("run"));
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_EQ(*lock->Folder(), dir.File("old"));
  EXPECT_EQ(*next->Folder(), dir.File("run"));
  EXPECT_EQ(RunLock::Acquire(dir.File("old")).status().code(), StatusCode::kAlreadyExists);
}

TEST(RunLockTest, CreatesADeletedFolderAgain) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.File("parent/run"));
  ASSERT_TRUE(lock.ok());
  std::filesystem::remove_all(dir.File("parent"));
  EXPECT_EQ(*lock->Folder(), dir.File("parent/run"));
  EXPECT_EQ(lock->times_remade(), 1);
  EXPECT_EQ(RunLock::Acquire(dir.File("parent/run")).status().code(), StatusCode::kAlreadyExists);
}

TEST(RunLockTest, NeverTakesAnotherRunsFolder) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.File("run"));
  ASSERT_TRUE(lock.ok());
  std::filesystem::remove_all(dir.File("run"));
  {
    const StatusOr<RunLock> next = RunLock::Acquire(dir.File("run"));
    ASSERT_TRUE(next.ok());
    EXPECT_EQ(lock->Folder().status().code(), StatusCode::kAlreadyExists);
    std::ofstream(dir.File("run/config.textproto")) << "of the next run";
  }
  // That run has ended, but its files are still its own.
  EXPECT_EQ(lock->Folder().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(lock->Folder().status().message(), HasSubstr("was deleted during the run"));
  EXPECT_EQ(lock->times_remade(), 0);
}

TEST(RunLockTest, TakesADeletedLockAgainUnlessAnotherRunWasFaster) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.path());
  ASSERT_TRUE(lock.ok());
  std::filesystem::remove(dir.File("lock"));
  EXPECT_EQ(*lock->Folder(), dir.path());
  EXPECT_EQ(RunLock::Acquire(dir.path()).status().code(), StatusCode::kAlreadyExists);
  std::filesystem::remove(dir.File("lock"));
  const StatusOr<RunLock> other = RunLock::Acquire(dir.path());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(lock->Folder().status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(*other->Folder(), dir.path());
}

TEST(RunLockTest, NamesTheObstacleInPlaceOfTheFolder) {
  const TempDir dir;
  std::ofstream(dir.File("file")) << "not a folder";
  std::filesystem::create_symlink("nowhere", dir.File("dangling"));
  std::filesystem::create_symlink("loop", dir.File("loop"));
  std::filesystem::create_symlink("file", dir.File("link"));
  const std::pair<const char*, const char*> kCases[] = {
      {"file", "a file has that name"},
      {"dangling", "it is a link to 'nowhere', which is not there"},
      {"loop", "it is a link that leads back to itself"},
      {"link", "it is a link to 'file', a file"}};
  for (const auto& [name, expected] : kCases) {
    const Status status = RunLock::Acquire(dir.File(name)).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("cannot make the folder '" + dir.File(name) + "'"));
    EXPECT_THAT(status.message(), HasSubstr(expected));
  }
}

TEST(RunLockTest, APipeInPlaceOfTheLockIsNamed) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("lock").c_str(), 0600), 0);
  const Status status = RunLock::Acquire(dir.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'" + dir.File("lock") + "' is a named pipe"));
}

TEST(RunLockTest, FileInPlaceOfFolderIsAnError) {
  const TempDir dir;
  std::ofstream(dir.File("run")) << "not a folder";
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.File("run"));
  ASSERT_FALSE(lock.ok());
  EXPECT_THAT(lock.status().message(), HasSubstr(dir.File("run")));
}

}  // namespace
}  // namespace ringtail
