#include "layers/convolution/algorithm_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/file.h"
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
  TempDir folder_;
};

TEST_F(AlgorithmChoicesTest, RemembersInAFile) {
  AlgorithmChoices first(Path());
  EXPECT_EQ(first.Find("a"), nullptr);
  first.Add("a", kFast);
  first.Save();

  AlgorithmChoices second(Path());
  const AlgorithmChoice* found = second.Find("a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->algorithm, "fast");
  EXPECT_EQ(found->seconds, kFast.seconds);
}

TEST_F(AlgorithmChoicesTest, KeepsWhatAnotherProcessFound) {
  AlgorithmChoices first(Path()), second(Path());
  first.Add("a", kFast);
  second.Add("b", kSlow);
  first.Save();
  second.Save();
  AlgorithmChoices third(Path());
  EXPECT_NE(third.Find("a"), nullptr);
  EXPECT_NE(third.Find("b"), nullptr);
}

TEST_F(AlgorithmChoicesTest, WritesNothingWithoutNews) {
  AlgorithmChoices choices(Path());
  choices.Save();
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(AlgorithmChoicesTest, DamagedFileIsForgottenAndReplaced) {
  ASSERT_TRUE(MakeDirectories(std::filesystem::path(Path()).parent_path()).ok());
  for (const char* text :
       {"", "{", "[]", "{\"format\": 2, \"choices\": {}}", "{\"format\": 1}",
        "{\"format\": 1, \"choices\": {\"a\": 1}}",
        "{\"format\": 1, \"choices\": {\"a\": {\"algorithm\": 1, \"seconds\": {}}}}",
        "{\"format\": 1, \"choices\": {\"a\": {\"algorithm\": \"x\", \"seconds\": {\"x\": []}}}}"}) {
    ASSERT_TRUE(WriteFileAtomic(Path(), text).ok());
    AlgorithmChoices choices(Path());
    EXPECT_EQ(choices.Find("a"), nullptr) << text;
    choices.Add("a", kSlow);
    choices.Save();
    EXPECT_NE(AlgorithmChoices(Path()).Find("a"), nullptr) << text;
  }
}

TEST_F(AlgorithmChoicesTest, FolderThatCannotBeWrittenIsNoError) {
  ASSERT_TRUE(WriteFileAtomic(folder_.path() + "/cache", "a file, not a folder").ok());
  AlgorithmChoices choices(Path());
  choices.Add("a", kFast);
  choices.Save();
  EXPECT_NE(choices.Find("a"), nullptr);
}

TEST_F(AlgorithmChoicesTest, OnlyWhatWasUsedIsHandedOn) {
  AlgorithmChoices first(Path());
  first.Add("a", kFast);
  first.Add("b", kSlow);
  first.Save();

  AlgorithmChoices second(Path());
  ASSERT_NE(second.Find("b"), nullptr);
  EXPECT_THAT(second.Used(), HasSubstr("\"b\""));
  EXPECT_THAT(second.Used(), Not(HasSubstr("\"a\"")));
}

TEST_F(AlgorithmChoicesTest, WhatIsHandedOnReplacesWhatIsKnown) {
  AlgorithmChoices from, to;
  from.Add("a", kSlow);
  to.Add("a", kFast);
  ASSERT_TRUE(to.Merge(from.Used()).ok());
  EXPECT_EQ(to.Find("a")->algorithm, "slow");
  EXPECT_EQ(to.Merge("{}").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(to.Find("a")->algorithm, "slow");
}

}  // namespace
}  // namespace ringtail
