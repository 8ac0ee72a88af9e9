#include "layers/algorithm_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

const AlgorithmChoice kFast = {.algorithm = "fast", .seconds = {{"fast", 0.25}, {"slow", 0.5}}};
const AlgorithmChoice kSlow = {.algorithm = "slow", .seconds = {{"slow", 0.125}}};

class AlgorithmChoicesTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/cache/ringtail/convolutions.json"; }
  AlgorithmChoices Open() const { return {Path(), "oneDNN 1, kernels 1"}; }
  TempDir folder_;
};

TEST_F(AlgorithmChoicesTest, RemembersInAFile) {
  AlgorithmChoices first = Open();
  EXPECT_EQ(first.Find("a"), nullptr);
  first.Add("a", kFast);
  first.Save();

  AlgorithmChoices second = Open();
  const AlgorithmChoice* found = second.Find("a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->algorithm, "fast");
  EXPECT_EQ(found->seconds, kFast.seconds);
}

TEST_F(AlgorithmChoicesTest, KeepsWhatAnotherProcessFound) {
  AlgorithmChoices first = Open(), second = Open();
  first.Add("a", kFast);
  second.Add("b", kSlow);
  first.Save();
  second.Save();
  AlgorithmChoices third = Open();
  EXPECT_NE(third.Find("a"), nullptr);
  EXPECT_NE(third.Find("b"), nullptr);
}

TEST_F(AlgorithmChoicesTest, SavesWhatWasMeasuredAgainWithMoreAlgorithms) {
  AlgorithmChoices first = Open(), late = Open();
  first.Add("a", kSlow);
  first.Save();
  AlgorithmChoices second = Open();
  second.Add("a", kFast);  // it knows one algorithm more
  second.Save();
  EXPECT_EQ(Open().Find("a")->algorithm, "fast");
  late.Add("a", kSlow);  // measured by an older program meanwhile
  late.Save();
  EXPECT_EQ(Open().Find("a")->algorithm, "fast");
}

TEST_F(AlgorithmChoicesTest, WritesNothingWithoutNews) {
  AlgorithmChoices choices = Open();
  choices.Save();
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(AlgorithmChoicesTest, DamagedFileIsForgottenAndReplaced) {
  ASSERT_TRUE(MakeDirectories(std::filesystem::path(Path()).parent_path()).ok());
  for (const char* text :
       {"", "{", "[]", R"({"format": 2})", R"({"format": 1})", R"({"format": 1, "versions": 1})",
        R"({"format": 1, "versions": "oneDNN 1, kernels 1"})",
        R"({"format": 1, "versions": "oneDNN 1, kernels 1", "choices": {"a": 1}})",
        R"({"format": 1, "versions": "oneDNN 1, kernels 1", "choices":
            {"a": {"algorithm": 1, "seconds": {}}}})",
        R"({"format": 1, "versions": "oneDNN 1, kernels 1", "choices":
            {"a": {"algorithm": "x", "seconds": {"x": []}}}})"}) {
    ASSERT_TRUE(WriteFileAtomic(Path(), text).ok());
    AlgorithmChoices choices = Open();
    EXPECT_EQ(choices.Find("a"), nullptr) << text;
    choices.Add("a", kSlow);
    choices.Save();
    EXPECT_NE(Open().Find("a"), nullptr) << text;
  }
}

TEST_F(AlgorithmChoicesTest, FolderThatCannotBeWrittenIsNoError) {
  ASSERT_TRUE(WriteFileAtomic(folder_.path() + "/cache", "a file, not a folder").ok());
  AlgorithmChoices choices = Open();
  choices.Add("a", kFast);
  choices.Save();
  EXPECT_NE(choices.Find("a"), nullptr);
}

TEST_F(AlgorithmChoicesTest, OnlyWhatWasUsedIsHandedOn) {
  AlgorithmChoices first = Open();
  first.Add("a", kFast);
  first.Add("b", kSlow);
  first.Save();

  AlgorithmChoices second = Open();
  ASSERT_NE(second.Find("b"), nullptr);
  EXPECT_THAT(second.Used(), HasSubstr("\"b\""));
  EXPECT_THAT(second.Used(), Not(HasSubstr("\"a\"")));
}

TEST_F(AlgorithmChoicesTest, WhatIsHandedOnComesFirstAndIsNotSaved) {
  AlgorithmChoices from("", "oneDNN 1, kernels 1");
  from.Add("a", kSlow);
  AlgorithmChoices to = Open();
  to.Add("a", kFast);
  ASSERT_TRUE(to.KeepAll(from.Used()).ok());
  EXPECT_EQ(to.Find("a")->algorithm, "slow");
  EXPECT_THAT(to.Used(), HasSubstr("slow"));
  EXPECT_EQ(to.KeepAll("{}").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(to.Find("a")->algorithm, "slow");
  to.Save();
  AlgorithmChoices later = Open();
  ASSERT_NE(later.Find("a"), nullptr);
  EXPECT_EQ(later.Find("a")->algorithm, "fast");
}

// For printing: it must not change what a checkpoint holds.
TEST_F(AlgorithmChoicesTest, PeekingCountsAsNoUse) {
  AlgorithmChoices first = Open();
  first.Add("a", kFast);
  first.Save();
  AlgorithmChoices second = Open();
  ASSERT_NE(second.Peek("a"), nullptr);
  EXPECT_EQ(second.Peek("b"), nullptr);
  const std::string unused = second.Used();
  second.Find("a");
  EXPECT_NE(second.Used(), unused);
}

TEST_F(AlgorithmChoicesTest, OtherVersionsCountForNothing) {
  AlgorithmChoices old(Path(), "oneDNN 1, kernels 0");
  old.Add("a", kFast);
  old.Save();
  AlgorithmChoices now = Open();
  EXPECT_EQ(now.Find("a"), nullptr);
  EXPECT_FALSE(now.KeepAll(old.Used()).ok());
  EXPECT_EQ(now.Find("a"), nullptr);
  now.Add("b", kSlow);
  now.Save();
  EXPECT_EQ(Open().Find("a"), nullptr);
  EXPECT_NE(Open().Find("b"), nullptr);
}

TEST_F(AlgorithmChoicesTest, PathThatCannotExistIsNoError) {
  AlgorithmChoices choices("/dev/null/" + std::string(300, 'x') + "/file", "");
  choices.Add("a", kFast);
  choices.Save();
  EXPECT_NE(choices.Find("a"), nullptr);
}

}  // namespace
}  // namespace ringtail
