#include "data/decoding/image_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "data/data.pb.h"
#include "data/dataset.h"
#include "data/decoding/image_guard.h"
#include "tests/data/image_folder.h"
#include "tests/data/test_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(ImageFormatTest, Extensions) {
  for (const char* name :
       {"a.jpg", "a.JPEG", "a.jfif", "a.b.Png", "x.bmp", ".a.jpg", "a.WebP", "a.tif", "a.TIFF"}) {
    EXPECT_TRUE(HasImageExtension(name)) << name;
    EXPECT_EQ(RefusedExtension(name), "") << name;
  }
  for (const char* name : {"Thumbs.db", "jpg", ".jpg", "a.jpg.txt", "", "a.", "a. ", "a.jpg png"}) {
    EXPECT_FALSE(HasImageExtension(name)) << name;
    EXPECT_EQ(RefusedExtension(name), "") << name;
  }
  for (const char* name : {"a.gif", "a.heic", "a.avif", "a.svg", "a.dng", "a.jxl"}) {
    EXPECT_FALSE(HasImageExtension(name)) << name;
    EXPECT_EQ("a" + RefusedExtension(name), name);
  }
  EXPECT_EQ(RefusedExtension("PHOTO.HEIC"), ".heic");
  EXPECT_EQ(ReadExtensions(), ".jpg, .jpeg, .jfif, .jpe, .png, .bmp, .webp, .tif or .tiff");
}

// Listing and decoding share a table: every listed format can be decoded.
TEST(ImageFormatTest, BytesOfEveryFormat) {
  EXPECT_EQ(FormatOf(Bytes("\xFF\xD8\xFF\xE0")), ImageFormat::kJpeg);
  EXPECT_EQ(FormatOf(Bytes("\x89PNG\r\n\x1A\n")), ImageFormat::kPng);
  EXPECT_EQ(FormatOf(Bytes("BM")), ImageFormat::kBmp);
  EXPECT_EQ(FormatOf(Bytes("RIFF....WEBP")), ImageFormat::kWebp);
  EXPECT_EQ(FormatOf(Bytes("II*\0"sv)), ImageFormat::kTiff);
  EXPECT_EQ(FormatOf(Bytes("MM\0*"sv)), ImageFormat::kTiff);
  EXPECT_EQ(FormatOf({}), std::nullopt);
  EXPECT_EQ(FormatOf(Bytes("words")), std::nullopt);
  EXPECT_EQ(RefusedFormat(Bytes("words")), "");
  EXPECT_EQ(FormatOf(Bytes("GIF89a")), std::nullopt);
  EXPECT_EQ(RefusedFormat(Bytes("GIF89a")), "a GIF image");
  EXPECT_EQ(RefusedFormat(Bytes("BM")), "");
}

TEST(ImageFormatTest, AFolderNamesImagesOfUnsupportedFormats) {
  const TempDir dir;
  for (const char* name : {"Cat/1.jpg", "Dog/1.jpg"}) PutFile(dir.File(name));
  EXPECT_THAT(OpenOrDie(dir.path())->Describe(), EndsWith("1 cat, 1 dog"));
  for (const char* name : {"Cat/2.gif", "Cat/3.heic", "Dog/4.HEIC", "Dog/notes.txt"}) {
    PutFile(dir.File(name));
  }
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_THAT(Keys(*dataset), ElementsAre("Cat/1.jpg", "Dog/1.jpg"));
  EXPECT_THAT(dataset->Describe(), EndsWith("(1 other file, 3 images of formats that are not read "
                                            "(.gif, .heic) ignored)"));
}

TEST(ImageFormatTest, AFolderOfNoOtherImagesSaysWhatTheyAre) {
  const TempDir dir;
  for (const char* name : {"Cat/1.heic", "Dog/2.HEIC", "Dog/notes.txt"}) PutFile(dir.File(name));
  EXPECT_THAT(
      OpenError(dir.path()).message(),
      EndsWith("there is Cat, Dog; convert these to JPEG (2 images of formats that are not read "
               "(.heic) ignored)"));
}

TEST(ImageFormatTest, AClassFolderWithoutImagesIsNamed) {
  const TempDir dir;
  for (const char* name : {"Cat/1.jpg", "Dog/1.jpg", "Fox/readme.txt"}) PutFile(dir.File(name));
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_THAT(dataset->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(dataset->Describe(), HasSubstr("1 folder without images (Fox)"));
  PutFile(dir.File("Fox/1.jpg"));
  EXPECT_THAT(OpenOrDie(dir.path())->Describe(), Not(HasSubstr("without images")));
}

}  // namespace
}  // namespace ringtail
