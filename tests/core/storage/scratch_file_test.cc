// Memory that is a file without a name.
#include "core/storage/scratch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

TEST(ScratchFileTest, HoldsWhatIsWrittenAndLeavesNothing) {
  const TempDir folder;
  {
    const auto file = ScratchFile::Create(folder.path(), 3 << 20).value();
    ASSERT_EQ(file->bytes().size(), size_t{3} << 20);
    EXPECT_EQ(file->bytes().front(), std::byte{0});
    file->bytes().back() = std::byte{7};
    EXPECT_EQ(file->bytes().back(), std::byte{7});
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ScratchFileTest, NothingHasRoom) {
  EXPECT_FALSE(ScratchFile::Create(TempDir().path(), 0).value()->bytes().empty());
}

TEST(ScratchFileTest, WhatCannotBeReservedIsSaid) {
  const TempDir folder;
  const auto file = ScratchFile::Create(folder.path(), size_t{1} << 60);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), HasSubstr("cannot reserve 1099511627776.0 MiB in '"));
  EXPECT_FALSE(ScratchFile::Create(folder.File("nowhere"), 10).ok());
}

}  // namespace
}  // namespace ringtail
