// Realistic folders, listed and scanned: everything usable is used, and everything else is named
// once, with its reason. bad_images_test.cc tests errors inside files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/loader.h"
#include "data/scan.h"
#include "tests/data/image_folder.h"
#include "tests/data/test_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

void PutImage(const std::string& path) {
  const std::vector<std::byte> jpeg = EncodeJpeg(DrawImage(48, 40));
  PutFile(path, {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
}

std::vector<BadImage> Scan(const Dataset& dataset) {
  std::vector<int64_t> indices(dataset.samples().size());
  std::iota(indices.begin(), indices.end(), 0);
  return ScanImages(dataset, indices, DataConfig(), /*decode=*/true).value();
}

auto Bad(const std::string& key, const std::string& reason) {
  return AllOf(Field(&BadImage::key, key), Field(&BadImage::reason, HasSubstr(reason)));
}

// Microsoft's download has exactly two images that are empty.
TEST(BadFilesTest, PetImagesReportsExactlyItsTwoEmptyImages) {
  TempDir dir;
  for (const char* name : {"Cat/0.jpg", "Cat/667.jpg", "Dog/0.jpg", "Dog/11703.jpg"}) {
    PutImage(dir.File(std::string("PetImages/") + name));
  }
  for (const char* name : {"Cat/666.jpg", "Dog/11702.jpg", "Cat/Thumbs.db", "Dog/Thumbs.db"}) {
    PutFile(dir.File(std::string("PetImages/") + name), "");
  }
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(dataset->samples().size(), 6u);
  EXPECT_THAT(Scan(*dataset),
              ElementsAre(Bad("Cat/666.jpg", "is empty"), Bad("Dog/11702.jpg", "is empty")));
}

TEST(BadFilesTest, OnlyUnreadableFilesAreReported) {
  TempDir dir;
  PutImage(dir.File("Cat/gar\xe7on.jpg"));
  PutImage(dir.File("elsewhere.jpg"));
  PutImage(dir.File("Dog/1.JPG"));
  PutFile(dir.File("Dog/2.jpg"), "these are words");
  PutFile(dir.File("Dog/Thumbs.db"));
  std::filesystem::create_symlink("../elsewhere.jpg", dir.File("Dog/3.jpg"));
  std::filesystem::create_symlink("nowhere", dir.File("Dog/4.jpg"));
  std::filesystem::create_symlink("5.jpg", dir.File("Dog/5.jpg"));  // to itself
  std::filesystem::create_directory(dir.File("Dog/6.jpg"));
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_THAT(Keys(*dataset), ElementsAre("Cat/gar\\xE7on.jpg", "Dog/1.JPG", "Dog/2.jpg",
                                          "Dog/3.jpg", "Dog/4.jpg", "Dog/5.jpg"));
  EXPECT_THAT(Scan(*dataset), ElementsAre(Bad("Dog/2.jpg", ""), Bad("Dog/4.jpg", "No such file"),
                                          Bad("Dog/5.jpg", "Too many levels of symbolic links")));
}

}  // namespace
}  // namespace ringtail
