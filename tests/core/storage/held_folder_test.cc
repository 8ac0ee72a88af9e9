// An open folder whose name is given to another one.
#include "core/storage/held_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(HeldFolderTest, FilesEndUpInTheFolderWhateverItsName) {
  const TempDir dir;
  const std::string name = dir.File("run"), other = dir.File("old");
  ASSERT_TRUE(fs::create_directory(name));
  const auto held = HeldFolder::Open(name);
  ASSERT_TRUE(held.ok()) << held.status().message();
  EXPECT_EQ(held->path(), name);
  fs::rename(name, other);
  ASSERT_TRUE(fs::create_directory(name));
  const Status written = WriteFileAtomic(held->Through("file"), "text");
  EXPECT_TRUE(written.ok()) << written.message();
  EXPECT_THAT(*ListFolder(other), ElementsAre("file"));
  EXPECT_THAT(*ListFolder(name), ElementsAre());
}

TEST(HeldFolderTest, ErrorsNameTheFolder) {
  const TempDir dir;
  const std::string name = dir.File("run");
  EXPECT_THAT(HeldFolder::Open(name).status().message(), HasSubstr("'" + name + "'"));
  ASSERT_TRUE(fs::create_directory(name));
  const auto held = HeldFolder::Open(name);
  fs::remove(name);
  const Status written = held->Named(WriteFileAtomic(held->Through("file"), "text"));
  EXPECT_EQ(written.code(), StatusCode::kNotFound);
  EXPECT_THAT(written.message(), HasSubstr("writing '" + name + "/file'"));
  EXPECT_THAT(written.message(), Not(HasSubstr("/proc/")));
  EXPECT_TRUE(held->Named(OkStatus()).ok());
}

}  // namespace
}  // namespace ringtail
