#include "core/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DiskRoomTest, WhatFitsFitsAndLeavesNothingBehind) {
  const TempDir dir;
  const Status status = CheckDiskRoom(dir.path(), 1 << 20);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(*ListFolder(dir.path()), ElementsAre());
}

TEST(DiskRoomTest, WhatDoesNotFitSaysHowMuchIsFree) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  const Status status = CheckDiskRoom(dir.path(), int64_t{1} << 60);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("'" + dir.path() + "' does not take a file of "));
  EXPECT_THAT(status.message(), HasSubstr(" MiB are free)"));
  EXPECT_THAT(*ListFolder(dir.path()), ElementsAre());
}

TEST(DiskRoomTest, TheLimitForFileSizesCounts) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {10000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = CheckDiskRoom(dir.path(), 20000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_THAT(status.message(), HasSubstr("File too large"));
}

TEST(DiskRoomTest, AFolderThatIsNotThereIsAnError) {
  const TempDir dir;
  EXPECT_EQ(CheckDiskRoom(dir.File("none"), 1).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringtail
