#include "dist/membership/security/job_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "core/storage/file.h"
#include "dist/membership/security/private_file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "0123456789abcdef";
constexpr uid_t kSomebody = 1000;

class JobToken : public ::testing::Test {
 protected:
  std::string File(const std::string& content, mode_t mode = 0600) {
    const std::string path = folder_.File("token" + std::to_string(files_++));
    EXPECT_TRUE(WriteFileAtomic(path, content).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  StatusOr<std::string> Read(const std::optional<std::string>& flag = std::nullopt) {
    return ReadJobToken(flag, [this](const std::string& name) -> std::optional<std::string> {
      const auto at = environment_.find(name);
      if (at == environment_.end()) return std::nullopt;
      return at->second;
    });
  }

  const TempDir folder_;
  int files_ = 0;
  std::map<std::string, std::string> environment_;
};

TEST_F(JobToken, ComesFromTheFlagTheVariableOrTheFileInThisOrder) {
  EXPECT_EQ(*Read(), "");
  environment_["RINGTAIL_TOKEN_FILE"] = File("from-a-file-of-the-environment\n");
  EXPECT_EQ(*Read(), "from-a-file-of-the-environment");
  environment_["RINGTAIL_TOKEN"] = "from-the-environment";
  EXPECT_EQ(*Read(), "from-the-environment");
  EXPECT_EQ(*Read(File("from-the-flag's-file\r\n")), "from-the-flag's-file");
}

TEST_F(JobToken, IsRefusedIfOthersMayReadIt) {
  for (const mode_t mode : {0644, 0604, 0660, 0606}) {
    const std::string path = File(kToken, mode);
    const auto token = Read(path);
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.status().code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(token.status().message(), AllOf(HasSubstr(path), HasSubstr("open to other users"),
                                                HasSubstr("chmod 600"), Not(HasSubstr(kToken))));
  }
  EXPECT_EQ(*Read(File(kToken, 0400)), kToken);
}

TEST_F(JobToken, IsRefusedIfItIsShortOrOddAndNeverRepeated) {
  for (const std::string bad : {"", "short", "with a space in the token", "two\nlines-of-a-token",
                                "not-ASCII-\xC3\xA4-0123456789"}) {
    environment_["RINGTAIL_TOKEN"] = bad;
    const auto token = Read();
    ASSERT_FALSE(token.ok()) << bad;
    EXPECT_EQ(token.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(token.status().message(), HasSubstr("RINGTAIL_TOKEN"));
    if (bad.empty()) continue;
    EXPECT_THAT(token.status().message(), Not(HasSubstr(bad)));
  }
  environment_["RINGTAIL_TOKEN"] = std::string(1025, 'x');
  EXPECT_FALSE(Read().ok());
  EXPECT_THAT(Read(folder_.File("missing")).status().message(), HasSubstr("--token-file"));
}

TEST_F(JobToken, MayBeReadByTheGroupOfAFileOfRoots) {
  const std::string path = File(kToken, 0440);
  struct stat state {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(Read(path).ok(), state.st_uid == 0) << "of user " << state.st_uid;
  if (geteuid() != 0) return;  // only root can give files away
  ASSERT_EQ(chown(path.c_str(), kSomebody, 0), 0);
  EXPECT_EQ(Read(path).status().code(), StatusCode::kPermissionDenied);
}

TEST(IsPrivate, AsksOnlyWhatGroupAndOthersMay) {
  constexpr mode_t kAllModes = 07777;
  for (mode_t mode = 0; mode <= kAllModes; ++mode) {
    const mode_t group = (mode / 8) % 8, others = mode % 8;
    const bool of_owner_alone = group == 0 && others == 0;
    const bool of_group_to_read = group == 4 && others == 0;
    EXPECT_EQ(IsPrivate(mode, kSomebody), of_owner_alone) << std::oct << mode;
    EXPECT_EQ(IsPrivate(mode, 0), of_owner_alone || of_group_to_read) << std::oct << mode;
    EXPECT_EQ(IsPrivate(S_IFREG | mode, 0), IsPrivate(mode, 0)) << std::oct << mode;
  }
}

TEST_F(JobToken, MustBeInARegularFile) {
  EXPECT_FALSE(ReadPrivateFile(folder_.path()).ok());
  const std::string pipe = folder_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadPrivateFile(pipe).status().message(), HasSubstr("no regular file"));
  EXPECT_EQ(ReadPrivateFile(File(std::string((1 << 20) + 1, 'x'))).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ringtail
