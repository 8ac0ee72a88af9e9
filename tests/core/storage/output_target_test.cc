// Outputs that are no regular files, which WriteFileAtomic must never replace.
#include "core/storage/output_target.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kLimit = 1 << 20;

std::string Content(const std::string& path) {
  const StatusOr<std::string> text = ReadFileText(path, kLimit);
  return text.ok() ? *text : text.status().ToString();
}

// A pipe that closes its ends on destruction.
struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Pipe() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  // The written data, once all writers have closed.
  std::string Rest() {
    close(ends[1]);
    ends[1] = -1;
    std::string text(100, '\0');
    const ssize_t got = read(ends[0], text.data(), text.size());
    return text.substr(0, got < 0 ? 0 : static_cast<size_t>(got));
  }
  std::array<int, 2> ends{};
};

TEST(OutputTargetTest, ALinkStaysAndItsTargetIsReplaced) {
  const TempDir dir;
  fs::create_directory(dir.File("real"));
  std::ofstream(dir.File("real/file")) << "old";
  fs::create_symlink("real/file", dir.File("link"));
  fs::create_symlink(dir.File("link"), dir.File("link_to_link"));
  ASSERT_TRUE(WriteFileAtomic(dir.File("link_to_link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(dir.File("link")));
  EXPECT_TRUE(fs::is_symlink(dir.File("link_to_link")));
  EXPECT_EQ(Content(dir.File("real/file")), "new");
  EXPECT_THAT(*ListFolder(dir.File("real")), ElementsAre("file"));
}

TEST(OutputTargetTest, TheTargetOfADanglingLinkIsCreated) {
  const TempDir dir;
  fs::create_symlink("later", dir.File("link"));
  ASSERT_TRUE(WriteFileAtomic(dir.File("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(dir.File("link")));
  EXPECT_EQ(Content(dir.File("later")), "new");
}

TEST(OutputTargetTest, ALoopOfLinksIsAnError) {
  const TempDir dir;
  fs::create_symlink("b", dir.File("a"));
  fs::create_symlink("a", dir.File("b"));
  const Status status = WriteFileAtomic(dir.File("a"), "new");
  EXPECT_THAT(status.message(), HasSubstr("cannot follow the link '" + dir.File("a") + "'"));
}

TEST(OutputTargetTest, AFolderIsAnError) {
  const TempDir dir;
  fs::create_directory(dir.File("folder"));
  const Status status = WriteFileAtomic(dir.File("folder"), "new");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'" + dir.File("folder") + "' is a folder"));
}

TEST(OutputTargetTest, ANamedPipeIsWrittenTo) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream pipe(dir.File("pipe"));
    got.assign(std::istreambuf_iterator<char>(pipe), {});
  });
  const Status status = WriteFileAtomic(dir.File("pipe"), "through the pipe");
  reader.join();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(dir.File("pipe")));
  EXPECT_THAT(*ListFolder(dir.path()), ElementsAre("pipe"));
}

TEST(OutputTargetTest, ADeviceIsWrittenTo) {
  const TempDir dir;
  fs::create_symlink("/dev/null", dir.File("null"));
  EXPECT_TRUE(WriteFileAtomic(dir.File("null"), "text").ok());
  EXPECT_TRUE(fs::is_symlink(dir.File("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  if (mknod(dir.File("device").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;  // not root
  // A container may forbid opening such a device; it must stay a device in any case.
  (void)WriteFileAtomic(dir.File("device"), "text");
  EXPECT_TRUE(fs::is_character_file(dir.File("device")));
}

TEST(OutputTargetTest, AnOpenPipeByItsNumber) {
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"}) {
    Pipe pipe;
    const Status status = WriteFileAtomic(folder + std::to_string(pipe.ends[1]), "to the pipe");
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(pipe.Rest(), "to the pipe");
  }
}

// As with `command > file`: output is appended to the earlier output of the shell or program.
TEST(OutputTargetTest, AnOpenFileByItsNumberKeepsItsPosition) {
  const TempDir dir;
  const StatusOr<FileDescriptor> file = FileDescriptor::Open(dir.File("file"), O_WRONLY | O_CREAT);
  ASSERT_TRUE(file.ok());
  const std::string_view before = "before, ", after = ", after";
  ASSERT_TRUE(file->Write(std::as_bytes(std::span(before))).ok());
  fs::create_symlink("/dev/fd/" + std::to_string(file->number()), dir.File("link"));
  ASSERT_TRUE(WriteFileAtomic(dir.File("link"), "between").ok());
  ASSERT_TRUE(file->Write(std::as_bytes(std::span(after))).ok());
  EXPECT_EQ(Content(dir.File("file")), "before, between, after");
  EXPECT_TRUE(fs::is_symlink(dir.File("link")));
}

TEST(OutputTargetTest, ANumberThatIsNotOpenIsAnError) {
  EXPECT_EQ(WriteFileAtomic("/dev/fd/987654", "text").ok(), false);
}

}  // namespace
}  // namespace ringtail
