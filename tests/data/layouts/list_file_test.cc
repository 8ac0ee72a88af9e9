// List files: labels by name or number, and every error with its file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "tests/data/image_folder.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ListFileTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a.jpg", "b.jpg", "sub/c d.jpg"}) PutFile(dir_.File(name), name);
  }
  std::unique_ptr<Dataset> Open(std::string_view list) {
    PutFile(list_, list);
    return OpenOrDie(list_);
  }
  std::string Error(std::string_view list) {
    PutFile(list_, list);
    const Status status = OpenError(list_);
    EXPECT_THAT(status.message(), StartsWith(list_));
    return status.message().substr(std::min(list_.size(), status.message().size()));
  }

  TempDir dir_;
  const std::string list_ = dir_.File("images.txt");
};

TEST_F(ListFileTest, NamesAreNumberedInOrder) {
  const auto dataset = Open("b.jpg zebra\na.jpg ant\nsub/c d.jpg\tzebra\n");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=0 b.jpg=1 sub/c d.jpg=1");
  EXPECT_THAT(dataset->class_names(), ElementsAre("ant", "zebra"));
  EXPECT_EQ(ReadText(*dataset, 2), "sub/c d.jpg");
  EXPECT_EQ(dataset->Describe(), "list file in " + list_ + ": 1 ant, 2 zebra");
}

TEST_F(ListFileTest, CatIsZeroAndDogIsOneInAnySpelling) {
  const auto dataset = Open("a.jpg Dogs\nb.jpg CAT\n");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=1 b.jpg=0");
  EXPECT_THAT(dataset->class_names(), ElementsAre("cat", "dog"));
}

TEST_F(ListFileTest, BehindATabALabelMayHaveBlanks) {
  const auto dataset = Open("a.jpg\twhite cat\nsub/c d.jpg\tblack dog\n");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=1 sub/c d.jpg=0");
  EXPECT_THAT(dataset->class_names(), ElementsAre("black dog", "white cat"));
}

TEST_F(ListFileTest, ATableHasItsColumnsInAnyOrder) {
  const auto dataset = Open(
      "fold,Label,path\r\n1,white cat,a.jpg\r\n2,\"a \"\"dog\"\", black\",\"sub/c d.jpg\"\r\n");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=1 sub/c d.jpg=0");
  EXPECT_THAT(dataset->class_names(), ElementsAre("a \"dog\", black", "white cat"));
  EXPECT_EQ(ReadText(*dataset, 1), "sub/c d.jpg");
  const auto tabs = Open("filename\tcategory\na.jpg\t3\nb.jpg\t-1\n");
  EXPECT_EQ(KeysAndLabels(*tabs), "a.jpg=3 b.jpg=-1");
}

TEST_F(ListFileTest, RowsThatDoNotFitTheirTable) {
  EXPECT_EQ(Error("path,label\na.jpg\n"), ":2: 1 fields where the first line names 2");
  EXPECT_EQ(Error("path,label\na.jpg,\n"),
            ":2: a path or a label is missing; -1 stands for no label");
  EXPECT_EQ(Error("path,label\n\"a.jpg,cat\n"), ":2: a quote is not closed in this line");
  EXPECT_EQ(Error("path,label\n\"a\"b,cat\n"), ":2: something stands behind a field in quotes");
  EXPECT_THAT(Error("path,label\n"), HasSubstr("the list names no images"));
}

TEST_F(ListFileTest, NumbersAreKept) {
  const auto dataset = Open("b.jpg 3\na.jpg 0\nsub/c d.jpg -1");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=0 b.jpg=3 sub/c d.jpg=-1");
  EXPECT_THAT(dataset->class_names(), ElementsAre("0", "1", "2", "3"));
}

TEST_F(ListFileTest, CommentsEmptyLinesAndForeignLineEnds) {
  const auto dataset =
      Open("\xef\xbb\xbf# pets\r\n\r\n  \t\r\n  # more\r\n  a.jpg   cat \r\nb.jpg dog");
  EXPECT_EQ(KeysAndLabels(*dataset), "a.jpg=0 b.jpg=1");
}

TEST_F(ListFileTest, AbsolutePathsAndMissingImages) {
  const auto dataset = Open(dir_.File("a.jpg") + " cat\nmissing.jpg dog\n");
  EXPECT_EQ(ReadText(*dataset, 0), "a.jpg");
  EXPECT_EQ(dataset->Read(1).status().code(), StatusCode::kNotFound);
}

TEST_F(ListFileTest, ErrorsHaveTheirLine) {
  EXPECT_THAT(Error("a.jpg cat\n\nb.jpg\n"), StartsWith(":3: 'b.jpg' has no label"));
  EXPECT_THAT(Error("a.jpg cat\na.jpg dog\n"), StartsWith(":2: 'a.jpg' is already in line 1"));
  EXPECT_THAT(Error("a.jpg cat\nb.jpg 1\n"), StartsWith(":2: label '1' is a number"));
  EXPECT_THAT(Error("a.jpg 1\nb.jpg cat\n"), StartsWith(":2: label 'cat' is a name"));
  EXPECT_THAT(Error("a.jpg 10000\n"), StartsWith(":1: label 10000 is out of range"));
  EXPECT_THAT(Error("a.jpg -2\n"), StartsWith(":1: label -2 is out of range"));
  EXPECT_THAT(Error(std::string("a.jpg cat\n\0\1\2 x\n", 16)), StartsWith(":2: this is not text"));
  EXPECT_THAT(Error("\xff\xfe"), StartsWith(":1: '\\xFF\\xFE' has no label"));
}

TEST_F(ListFileTest, EmptyLists) {
  EXPECT_THAT(Error(""), HasSubstr("names no images"));
  EXPECT_THAT(Error("# only a comment\n"), HasSubstr("names no images"));
  EXPECT_THAT(Error("elsewhere/a.jpg cat\n"), HasSubstr("paths are relative to the list's folder"));
}

}  // namespace
}  // namespace ringtail
