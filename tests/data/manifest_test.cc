#include "data/manifest.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/picture_folder.h"
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

}  // namespace
}  // namespace ringtail
