// Man pages: a page for each program and verb, which has every flag and which troff formats without a complaint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "apps/help/man_page.h"
#include "core/storage/file.h"
#include "tests/apps/help/verbs.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

class ManualTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    const ProcessResult written = RunRingtail({"manual", "--out", folder_->File("new/man1")});
    ASSERT_EQ(written.exit_code, 0) << written.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string Path(const std::string& page) { return folder_->File("new/man1/" + page); }
  static std::string Page(const std::string& page) {
    return ReadFileText(Path(page), 1 << 20).value();
  }
  // As troff has it: "\-\-until\-accuracy".
  static std::string Escaped(const std::string& name) {
    std::string escaped;
    for (const char c : name) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
    return escaped;
  }
  static std::string InTroff(const std::string& flag) { return "\\fB" + Escaped(flag) + "\\fR"; }

  static TempDir* folder_;
};
TempDir* ManualTest::folder_ = nullptr;

TEST_F(ManualTest, EveryVerbHasAPageWithAllItsFlags) {
  const std::string program = Page("ringtail.1");
  for (const VerbHelp& verb : AllVerbs()) {
    EXPECT_THAT(program, HasSubstr("\n.BR ringtail\\-" + Escaped(verb.name) + " (1)\n"));
    const std::string page = Page("ringtail-" + verb.name + ".1");
    for (const std::string& flag : verb.flags) {
      EXPECT_THAT(page, HasSubstr(InTroff(flag))) << verb.name;
    }
    EXPECT_THAT(page, HasSubstr(".SH \"EXAMPLES\"\n.nf\nringtail " + Escaped(verb.name)))
        << verb.name;
  }
  for (const char* code : {"\n2    a flag or a config is wrong\n", "\n75   another rank"}) {
    EXPECT_THAT(program, HasSubstr(code));
  }
  EXPECT_EQ(Page("dogs_vs_cats.1"), ".so man1/ringtail.1\n");
  EXPECT_THAT(Page("ringtail-train.1"), HasSubstr("\\fIHOST[:PORT]\\fR"));
  EXPECT_THAT(Page("ringtail-train.1"), HasSubstr("\\fIf32|bf16|auto\\fR"));
  const std::string launcher = Page("ringtail_launch.1");
  for (const char* flag : {"--hosts", "--hostfile", "--timeout-kill", "--no-kill", "--ssh"}) {
    EXPECT_THAT(launcher, HasSubstr(InTroff(flag)));
  }
}

// What a reader sees, and nothing on standard error.
TEST_F(ManualTest, PagesAreFormattedWithoutWarnings) {
  if (RunProcess({"sh", "-c", "command -v groff"}).exit_code != 0) GTEST_SKIP() << "no groff";
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_->File("new/man1"))) {
    if (entry.path().filename() == "dogs_vs_cats.1") continue;  // one line that names another page
    const ProcessResult shown =
        RunProcess({"groff", "-man", "-ww", "-b", "-Tascii", "-P-cbou", entry.path().string()});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(shown.err, "") << entry.path();
    EXPECT_THAT(shown.out, HasSubstr("SYNOPSIS"));
    EXPECT_THAT(shown.out, Not(HasSubstr("\\f"))) << entry.path();
    ++pages;
  }
  EXPECT_GT(pages, 12);
}

TEST(ManPage, EscapesWhatTroffWouldTakeForARequest) {
  const ProgramInfo program{.own = {.name = "p",
                                    .description = "Does it",
                                    .footer = "Examples\n  p 'a\\b' --all\n\n.end of it",
                                    .flags = {{.names = {"--all"},
                                               .description = "'quoted' \\n text",
                                               .group = "Options"}}},
                            .verbs = {}};
  const std::string page = ManPages(program).front().text;
  EXPECT_THAT(page, HasSubstr("\n\\&'quoted' \\en text\n"));
  EXPECT_THAT(page, HasSubstr(".nf\np 'a\\eb' \\-\\-all\n.fi\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.end of it\n"));
}

}  // namespace
}  // namespace ringtail
