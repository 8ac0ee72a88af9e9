#include "core/storage/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kLimit = 1 << 20;

std::string Content(const std::string& path) {
  const StatusOr<std::string> text = ReadFileText(path, kLimit);
  return text.ok() ? *text : text.status().ToString();
}

std::vector<std::string> Names(const std::string& folder) {
  const StatusOr<std::vector<std::string>> names = ListFolder(folder);
  return names.ok() ? *names : std::vector<std::string>{names.status().ToString()};
}

TEST(FileTest, ReadsWrittenContent) {
  const TempDir dir;
  const std::string text("with a zero \0 and a newline\n", 27);
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), text).ok());
  EXPECT_EQ(Content(dir.File("a")), text);
  const StatusOr<std::vector<std::byte>> bytes = ReadFileBytes(dir.File("a"), kLimit);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()), text);
}

TEST(FileTest, WritesPartsInOrder) {
  const TempDir dir;
  const std::string_view texts[] = {"one", "", " two"};
  std::vector<std::span<const std::byte>> parts;
  for (const std::string_view text : texts) parts.push_back(std::as_bytes(std::span(text)));
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), parts).ok());
  EXPECT_EQ(Content(dir.File("a")), "one two");
}

TEST(FileTest, ReadLimitIsExact) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), std::string(5000, 'x')).ok());
  EXPECT_TRUE(ReadFileText(dir.File("a"), 5000).ok());
  const StatusOr<std::string> too_large = ReadFileText(dir.File("a"), 4999);
  EXPECT_EQ(too_large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(too_large.status().message(), HasSubstr(dir.File("a")));
  EXPECT_TRUE(ReadFileText(dir.File("a"), INT64_MAX).ok());
}

TEST(FileTest, ReadsFilesOfProcWithSizeZero) {
  const StatusOr<std::string> status = ReadFileText("/proc/self/status", kLimit);
  ASSERT_TRUE(status.ok()) << status.status().ToString();
  EXPECT_THAT(*status, HasSubstr("VmHWM"));
  EXPECT_EQ(ReadFileText("/proc/self/status", 10).status().code(), StatusCode::kResourceExhausted);
}

TEST(FileTest, RefusesSpecialFiles) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFileText(dir.File("pipe"), kLimit).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFileText(dir.path(), kLimit).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFileText(dir.File("none"), kLimit).status().code(), StatusCode::kNotFound);
}

TEST(FileTest, ReplacesOldContentAndLeavesNothingElse) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "a long old text").ok());
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "new").ok());
  EXPECT_EQ(Content(dir.File("a")), "new");
  EXPECT_THAT(Names(dir.path()), ElementsAre("a"));
}

TEST(FileTest, OverwritesTheTemporaryFileOfAKilledWriterWithOurProcessId) {
  const TempDir dir;
  const std::string stale = dir.File(".a.tmp-" + std::to_string(getpid()));
  std::ofstream(stale) << "the torn and much longer file of a writer that died";
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "new").ok());
  EXPECT_EQ(Content(dir.File("a")), "new");
  EXPECT_THAT(Names(dir.path()), ElementsAre("a"));
}

TEST(FileTest, AFailedWriteNamesThePathAndCleansUp) {
  const TempDir dir;
  std::filesystem::create_directory(dir.File("folder"));
  const Status onto_folder = WriteFileAtomic(dir.File("folder"), "text");
  EXPECT_FALSE(onto_folder.ok());
  EXPECT_THAT(onto_folder.message(), HasSubstr(dir.File("folder")));
  EXPECT_THAT(Names(dir.path()), ElementsAre("folder"));
  EXPECT_EQ(WriteFileAtomic(dir.File("none/a"), "text").code(), StatusCode::kNotFound);
}

TEST(FileTest, LinkSharesContentAndReplaces) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "first").ok());
  ASSERT_TRUE(WriteFileAtomic(dir.File("b"), "second").ok());
  ASSERT_TRUE(LinkFileAtomic(dir.File("a"), dir.File("best")).ok());
  EXPECT_EQ(std::filesystem::hard_link_count(dir.File("a")), 2u);
  ASSERT_TRUE(LinkFileAtomic(dir.File("a"), dir.File("best")).ok()) << "already the same file";
  ASSERT_TRUE(LinkFileAtomic(dir.File("b"), dir.File("best")).ok());
  EXPECT_EQ(Content(dir.File("best")), "second");
  ASSERT_TRUE(WriteFileAtomic(dir.File("b"), "third").ok());
  EXPECT_EQ(Content(dir.File("best")), "second") << "replacing b must not change its other name";
  EXPECT_THAT(Names(dir.path()), ElementsAre("a", "b", "best"));
  EXPECT_EQ(LinkFileAtomic(dir.File("none"), dir.File("best")).code(), StatusCode::kNotFound);
  EXPECT_EQ(Content(dir.File("best")), "second");
}

TEST(FileTest, CreatesMissingParentFolders) {
  const TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir.File("a/b/c/")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(dir.File("a/b/c")));
  EXPECT_TRUE(MakeDirectories(dir.File("a/b")).ok());
  ASSERT_TRUE(WriteFileAtomic(dir.File("a/file"), "").ok());
  for (const char* path : {"a/file", "a/file/b"}) {
    const Status status = MakeDirectories(dir.File(path));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(dir.File("a/file")));
  }
}

TEST(FileTest, RemovesOnlyTemporaryFiles) {
  const TempDir dir;
  const std::vector<std::string> kept = {".a.tmp-",  ".a.tmp-12x", ".hidden", ".tmp-12",
                                         "a.tmp-12", "lock",       "step"};
  for (const std::string& name : kept) std::ofstream(dir.File(name)) << name;
  for (const char* name : {".a.tmp-12", ".step-00000001.safetensors.tmp-7", ".b.tmp-1.tmp-2"}) {
    std::ofstream(dir.File(name)) << name;
  }
  ASSERT_TRUE(RemoveTemporaryFiles(dir.path()).ok());
  EXPECT_EQ(Names(dir.path()), kept);
  EXPECT_EQ(RemoveTemporaryFiles(dir.File("none")).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringtail
