#include "core/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/file.h"
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

TEST(RunLockTest, SecondRunIsRefusedAndToldWhoHoldsIt) {
  const TempDir dir;
  ChildProcess holder({kHolder, dir.File("run")});
  ASSERT_EQ(holder.ReadLine(), "locked");
  const StatusOr<RunLock> second = RunLock::Acquire(dir.File("run"));
  ASSERT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(),
              HasSubstr("process " + std::to_string(holder.pid()) + " on host " + HostName()));
  EXPECT_THAT(second.status().message(), HasSubstr(dir.File("run")));
}

TEST(RunLockTest, LockOfKilledHolderIsTakenOver) {
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

TEST(RunLockTest, HolderWithoutNameIsAnotherProcess) {
  const TempDir dir;
  const StatusOr<RunLock> lock = RunLock::Acquire(dir.path());
  ASSERT_TRUE(lock.ok());
  std::filesystem::resize_file(dir.File("lock"), 0);
  EXPECT_THAT(RunLock::Acquire(dir.path()).status().message(), HasSubstr("by another process;"));
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
