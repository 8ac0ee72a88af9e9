#include "core/storage/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DiskRoomTest, FittingFilesLeaveNothingBehind) {
  const TempDir dir;
  const Status status = CheckDiskRoom(dir.path(), std::vector<int64_t>{1 << 20, 1 << 10});
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(*ListFolder(dir.path()), ElementsAre());
}

TEST(DiskRoomTest, TheErrorTellsTheFreeSpace) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  const Status status = CheckDiskRoom(dir.path(), std::vector{int64_t{1} << 60});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("'" + dir.path() + "' does not take a file of "));
  EXPECT_THAT(status.message(), HasSubstr(" MiB are free)"));
  EXPECT_THAT(*ListFolder(dir.path()), ElementsAre());
}

// Mounts a file system of 1 MiB that only this process sees; false if that is not permitted.
bool MountSmall(const std::string& folder) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

TEST(DiskRoomTest, FilesMustFitTogether) {
  constexpr int kMayNot = 77;
  constexpr int64_t kKibi = 1 << 10;
  const TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    if (!MountSmall(dir.path())) _exit(kMayNot);
    const Status fits = CheckDiskRoom(dir.path(), std::vector{300 * kKibi, 600 * kKibi});
    const Status not_both = CheckDiskRoom(dir.path(), std::vector{600 * kKibi, 600 * kKibi});
    EXPECT_TRUE(fits.ok()) << fits.message();
    EXPECT_EQ(not_both.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(not_both.message(), HasSubstr("2 files of 1.2 MiB together (1.0 MiB are free)"));
    EXPECT_THAT(*ListFolder(dir.path()), ElementsAre());
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFEXITED(state));
  if (WEXITSTATUS(state) == kMayNot) GTEST_SKIP() << "no file system may be mounted here";
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

TEST(DiskRoomTest, TheLimitForFileSizesCounts) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {10000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = CheckDiskRoom(dir.path(), std::vector<int64_t>{9000, 20000});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
  EXPECT_THAT(status.message(), HasSubstr("does not take 2 files of "));
}

TEST(DiskRoomTest, AMissingFolderIsAnError) {
  const TempDir dir;
  EXPECT_EQ(CheckDiskRoom(dir.File("none"), std::vector<int64_t>{1}).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringtail
