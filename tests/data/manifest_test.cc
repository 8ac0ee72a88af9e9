#include "data/manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "data/layouts/packed_writer.h"
#include "data/loader.h"
#include "data/scan.h"
#include "tests/data/image_folder.h"
#include "tests/data/memory_dataset.h"
#include "tests/data/test_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

TEST(DatasetFingerprintTest, ChangesWithKeysLabelsClassesAndOrder) {
  TempDir dir;
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) PutFile(dir.File(name));
  const auto open = [&](const std::string& list) {
    PutFile(dir.File("list.txt"), list);
    return OpenOrDie(dir.File("list.txt"));
  };
  const auto dataset = open("a.jpg cat\nb.jpg dog\n");
  std::set<uint64_t> seen = {
      DatasetFingerprint(*dataset, {}),
      DatasetFingerprint(*dataset, {0}),
      DatasetFingerprint(*dataset, {0, 1}),
      DatasetFingerprint(*dataset, {1, 0}),
      DatasetFingerprint(*open("a.jpg dog\nb.jpg cat\n"), {0, 1}),
      DatasetFingerprint(*open("a.jpg cat\nc.jpg dog\n"), {0, 1}),
      DatasetFingerprint(*open("a.jpg cat\nb.jpg fox\n"), {0, 1}),
      DatasetFingerprint(*open("a.jpg cat\nb.jpg dog\nc.jpg fox\n"), {0, 1}),
  };
  EXPECT_EQ(seen.size(), 8u);
}

TEST(DatasetFingerprintTest, IsTheSameEverywhere) {
  TempDir here, there;
  for (const TempDir* dir : {&here, &there}) {
    PutFile(dir->File("train/cat.0.jpg"));
    PutFile(dir->File("train/dog.0.jpg"));
  }
  constexpr uint64_t kGolden = 7812148818362624306U;
  EXPECT_EQ(DatasetFingerprint(*OpenOrDie(here.path()), {0, 1}), kGolden);
  EXPECT_EQ(DatasetFingerprint(*OpenOrDie(there.File("train")), {0, 1}), kGolden);
}

TEST(ImageFingerprintTest, ChangesWithNameLabelAndContent) {
  const Sample sample{.key = "cat.0.jpg", .label = 0};
  const auto bytes = Bytes("one"), other = Bytes("two"), longer = Bytes("one and");
  const std::set<uint64_t> seen = {
      ImageFingerprint(sample, bytes),
      ImageFingerprint(sample, other),
      ImageFingerprint(sample, longer),
      ImageFingerprint({.key = "cat.1.jpg", .label = 0}, bytes),
      ImageFingerprint({.key = "cat.0.jpg", .label = 1}, bytes),
  };
  EXPECT_EQ(seen.size(), 5u);
}

uint64_t ScannedFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices) {
  uint64_t fingerprint = 0;
  EXPECT_TRUE(ScanImages(dataset, indices, DataConfig(), true, {}, &fingerprint).ok());
  return fingerprint;
}

TEST(ImageFingerprintTest, TheSumOverPartsIsIndependentOfTheirOrder) {
  MemoryDataset dataset;
  for (uint64_t i = 0; i < 40; ++i) {
    dataset.Add("cat." + std::to_string(i) + ".jpg", 0, EncodeJpeg(DrawImage(16, 16, i)));
  }
  dataset.Add("cat.40.jpg", 0, Bytes("not an image: does not count"));
  const uint64_t all = ScannedFingerprint(dataset, {4, 0, 1, 2, 3, 40});
  EXPECT_NE(all, 0u);
  EXPECT_EQ(all, ScannedFingerprint(dataset, {0, 1}) + ScannedFingerprint(dataset, {2, 3, 4}));
  // The contents of two files are exchanged.
  const auto first = dataset.Read(0), second = dataset.Read(1);
  dataset.Replace(0, second);
  dataset.Replace(1, first);
  EXPECT_NE(all, ScannedFingerprint(dataset, {0, 1, 2, 3, 4}));
}

TEST(FileSizesTest, OfFilesAndOfAPackedFile) {
  TempDir dir;
  PutFile(dir.File("train/cat.0.jpg"), "four");
  PutFile(dir.File("train/dog.0.jpg"), "eleven byte");
  const auto files = OpenOrDie(dir.path());
  EXPECT_EQ(FileSizes(*files, {1, 0}, 2).value(), (std::vector<int64_t>{11, 4}));
  ASSERT_TRUE(WritePackedFile(*files, {0, 1}, {}, dir.File("packed"), [](int64_t, int64_t) {
                return true;
              }).ok());
  EXPECT_EQ(FileSizes(*OpenOrDie(dir.File("packed")), {1, 0}, 2).value(),
            (std::vector<int64_t>{11, 4}));
  std::filesystem::remove(dir.File("train/dog.0.jpg"));
  EXPECT_EQ(FileSizes(*files, {1}, 1).value(), std::vector<int64_t>{-1});
}

}  // namespace
}  // namespace ringtail
