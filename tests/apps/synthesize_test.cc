#include "apps/synthesize/synthesize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <opencv2/imgcodecs.hpp>

#include "core/parallel_for.h"
#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// Name to content, of all files in `folder`.
std::map<std::string, std::string> FilesIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : NamesIn(folder)) {
    files[name] = *ReadFileText(std::filesystem::path(folder) / name, 1 << 20);
  }
  return files;
}

TEST(SynthesizeTest, WritesKagglesLayout) {
  const TempDir dir;
  const std::string out = dir.File("new/folder");
  ASSERT_TRUE(Synthesize({.output = out, .images = 7, .test_images = 3}).ok());
  EXPECT_THAT(NamesIn(out), UnorderedElementsAre("train", "test1"));
  EXPECT_THAT(NamesIn(out + "/train"),
              UnorderedElementsAre("cat.0.jpg", "cat.1.jpg", "cat.2.jpg", "cat.3.jpg", "dog.0.jpg",
                                   "dog.1.jpg", "dog.2.jpg"));
  EXPECT_THAT(NamesIn(out + "/test1"), UnorderedElementsAre("1.jpg", "2.jpg", "3.jpg"));
}

TEST(SynthesizeTest, WritesColourImagesOfVariousSizes) {
  const TempDir dir;
  ASSERT_TRUE(Synthesize({.output = dir.path(), .images = 8}).ok());
  std::map<std::pair<int, int>, int> sizes;
  for (const auto& [name, bytes] : FilesIn(dir.File("train"))) {
    EXPECT_EQ(bytes.substr(0, 3), "\xFF\xD8\xFF") << name << " is no JPEG file";
    const cv::Mat image = cv::imread(dir.File("train/" + name), cv::IMREAD_UNCHANGED);
    ASSERT_EQ(image.type(), CV_8UC3) << name;
    for (const int side : {image.rows, image.cols}) {
      EXPECT_GE(side, 160) << name;
      EXPECT_LE(side, 320) << name;
    }
    cv::Scalar mean, deviation;
    cv::meanStdDev(image, mean, deviation);
    EXPECT_GT(deviation[0] + deviation[1] + deviation[2], 15) << name << " is nearly empty";
    ++sizes[{image.rows, image.cols}];
  }
  EXPECT_GT(sizes.size(), 4);
}

TEST(SynthesizeTest, IsAFunctionOfTheSeedForAnyNumberOfThreads) {
  const TempDir dir;
  const int threads = NumComputeThreads();
  SetNumComputeThreads(1);
  ASSERT_TRUE(Synthesize({.output = dir.File("a"), .images = 6, .test_images = 4, .seed = 7}).ok());
  SetNumComputeThreads(3);
  ASSERT_TRUE(Synthesize({.output = dir.File("b"), .images = 6, .test_images = 4, .seed = 7}).ok());
  SetNumComputeThreads(threads);
  EXPECT_EQ(FilesIn(dir.File("a/train")), FilesIn(dir.File("b/train")));
  EXPECT_EQ(FilesIn(dir.File("a/test1")), FilesIn(dir.File("b/test1")));
}

TEST(SynthesizeTest, LargerSetHoldsTheSmallerOne) {
  const TempDir dir;
  ASSERT_TRUE(Synthesize({.output = dir.File("small"), .images = 4}).ok());
  ASSERT_TRUE(Synthesize({.output = dir.File("large"), .images = 8}).ok());
  const auto small = FilesIn(dir.File("small/train")), large = FilesIn(dir.File("large/train"));
  ASSERT_EQ(small.size(), 4);
  for (const auto& [name, bytes] : small) EXPECT_EQ(large.at(name), bytes) << name;
}

TEST(SynthesizeTest, NoTwoImagesAreAlike) {
  const TempDir dir;
  std::map<std::string, std::string> first_with;  // content to name
  for (const uint64_t seed : {1, 2}) {
    const std::string out = dir.File(std::to_string(seed));
    ASSERT_TRUE(Synthesize({.output = out, .images = 6, .test_images = 6, .seed = seed}).ok());
    for (const char* folder : {"train", "test1"}) {
      for (const auto& [name, bytes] : FilesIn(std::filesystem::path(out) / folder)) {
        const auto [place, is_new] =
            first_with.emplace(bytes, std::filesystem::path(out) / folder / name);
        EXPECT_TRUE(is_new) << name << " of seed " << seed << " is " << place->second;
      }
    }
  }
  EXPECT_EQ(first_with.size(), 24);
}

TEST(SynthesizeTest, NeverTouchesAnExistingFolder) {
  const TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir.File("train")).ok());
  std::ofstream(dir.File("train/cat.0.jpg")) << "mine";
  const Status status = Synthesize({.output = dir.path(), .images = 2});
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr(dir.File("train") + " exists"));
  EXPECT_THAT(FilesIn(dir.File("train")), ElementsAre(testing::Pair("cat.0.jpg", "mine")));
}

TEST(SynthesizeTest, ReplacesTheRestOfAnInterruptedRun) {
  const TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir.File("train.partial")).ok());
  std::ofstream(dir.File("train.partial/cat.9.jpg")) << "half a pict";
  ASSERT_TRUE(Synthesize({.output = dir.path(), .images = 2}).ok());
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("train"));
  EXPECT_THAT(NamesIn(dir.File("train")), UnorderedElementsAre("cat.0.jpg", "dog.0.jpg"));
}

TEST(SynthesizeTest, RefusesCountsOutOfRange) {
  const TempDir dir;
  for (const int64_t images : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
    const Status status = Synthesize({.output = dir.path(), .images = images});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << images;
    EXPECT_THAT(status.message(), HasSubstr("--images is " + std::to_string(images)));
  }
  EXPECT_EQ(Synthesize({.output = dir.path(), .test_images = -1}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Synthesize({.output = ""}).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(NamesIn(dir.path()), testing::IsEmpty());
}

TEST(SynthesizeTest, SaysWhereItCannotWrite) {
  const TempDir dir;
  std::ofstream(dir.File("file")) << "not a folder";
  const Status status = Synthesize({.output = dir.File("file"), .images = 2});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(dir.File("file")));
}

}  // namespace
}  // namespace ringtail
