// Broken images and decompression bombs in a realistic folder: data set, scan and loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <opencv2/imgcodecs.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage/file.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/scan.h"
#include "tests/data/memory_dataset.h"
#include "tests/data/test_images.h"
#include "tests/data/tiff_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::HasSubstr;
using Colour = JpegOptions::Colour;

std::vector<std::byte> Encode(const std::string& extension, const cv::Mat& image) {
  std::vector<uint8_t> encoded;
  EXPECT_TRUE(cv::imencode(extension, image, encoded));
  const auto* first = reinterpret_cast<const std::byte*>(encoded.data());
  return {first, first + encoded.size()};
}

void Write(const std::string& path, const std::vector<std::byte>& bytes) {
  const std::span<const std::byte> part(bytes);
  ASSERT_TRUE(WriteFileAtomic(path, {&part, 1}).ok());
}

std::vector<std::byte> Truncated(std::vector<std::byte> bytes) {
  bytes.resize(bytes.size() / 2);
  return bytes;
}

// Good and bad images with consecutive numbers; returns a part of the reason of each bad one by
// key.
std::map<std::string, std::string> FillFolder(const TempDir& folder) {
  const Image image = DrawImage(120, 90);
  std::vector<std::byte> junk_behind = EncodeJpeg(image);
  junk_behind.resize(junk_behind.size() + 99, std::byte{0x55});
  const std::vector<std::vector<std::byte>> good = {
      EncodeJpeg(image),
      junk_behind,
      EncodeJpeg(image, {.colour = Colour::kGrey}),
      EncodeJpeg(image, {.colour = Colour::kCmyk}),
      EncodeJpeg(image, {.colour = Colour::kAdobeInvertedCmyk}),
      EncodeJpeg(image, {.colour = Colour::kYcck}),
      EncodeJpeg(image, {.progressive = true}),
      EncodeJpeg(image, {.orientation = 6}),
      Encode(".bmp", cv::Mat(40, 50, CV_8UC3, cv::Scalar(10, 20, 30))),
      Encode(".png", cv::Mat(40, 50, CV_8UC3, cv::Scalar(10, 20, 30))),
      Encode(".png", cv::Mat(40, 50, CV_16UC3, cv::Scalar(10000, 20000, 30000))),
      Encode(".png", cv::Mat(40, 50, CV_8UC4, cv::Scalar(10, 20, 30, 128))),
      Encode(".png", cv::Mat(40, 50, CV_8UC1, cv::Scalar(10))),
      Encode(".webp", cv::Mat(40, 50, CV_8UC3, cv::Scalar(10, 20, 30))),
      EncodeTiff({image}, {.orientation = 6}),
  };
  const std::vector<std::pair<std::vector<std::byte>, std::string>> bad = {
      {{}, "is empty"},
      {Bytes("this is not an image"), "is not a JPEG, PNG, BMP, WebP or TIFF image"},
      {Truncated(EncodeJpeg(image)), "is truncated after"},
      {Truncated(EncodeJpeg(image, {.progressive = true})), "is truncated"},
      {Bytes("GIF89a\x01\0\x01\0\0\0\0;"sv), "is a GIF image"},
      {Truncated(good[8]), "is a BMP image truncated after"},
      {Truncated(good[9]), "is a PNG image truncated after"},
      {Truncated(good[13]), "is a WebP image truncated after"},
      {Truncated(good[14]), "is a TIFF image with a broken or truncated header"},
  };
  std::map<std::string, std::string> reasons;
  int number = 0;
  for (const auto& bytes : good)
    Write(folder.File("cat." + std::to_string(number++) + ".jpg"), bytes);
  for (const auto& [bytes, reason] : bad) {
    const std::string name = "dog." + std::to_string(number++) + ".jpg";
    Write(folder.File(name), bytes);
    reasons[name] = reason;
  }
  // Files that are no images.
  Write(folder.File("Thumbs.db"), Bytes("\xD0\xCF\x11\xE0"sv));
  std::filesystem::create_directory(folder.File("cat.900.jpg"));
  std::filesystem::create_symlink(folder.File("nowhere"), folder.File("cat.901.jpg"));
  return reasons;
}

TEST(BadImagesTest, ARealisticFolder) {
  const TempDir folder;
  const std::map<std::string, std::string> expected = FillFolder(folder);
  DataConfig config;
  config.set_path(folder.path());
  config.set_workers(3);
  config.mutable_bad_images()->set_max_fraction(1);
  const auto dataset = Dataset::Open(config).value();
  std::vector<int64_t> indices(dataset->samples().size());
  std::iota(indices.begin(), indices.end(), 0);

  const std::vector<BadImage> bad = ScanImages(*dataset, indices, config, /*decode=*/true).value();
  std::set<std::string> named;
  for (const BadImage& image : bad) {
    EXPECT_TRUE(named.insert(image.key).second) << image.key << " is listed twice";
    const auto reason = expected.find(image.key);
    if (reason != expected.end()) {
      EXPECT_THAT(image.reason, HasSubstr(reason->second));
    } else {  // the data set may leave these out of its list
      EXPECT_THAT(image.key, testing::AnyOf("cat.900.jpg", "cat.901.jpg"));
    }
  }
  for (const auto& [key, reason] : expected) EXPECT_TRUE(named.contains(key)) << key;

  // An epoch over all of them completes, each good one is used, and the loader reports the same
  // list.
  LoaderOptions options;
  options.mode = LoaderMode::kEvaluate;
  options.batch = 4;
  options.image_size = 32;
  const auto loader = DataLoader::Create(dataset.get(), indices, config, options).value();
  int64_t used = 0;
  while (true) {
    const LoadedBatch batch = loader->Next().value();
    if (batch.labels.empty()) break;
    for (const int32_t label : batch.labels) used += label >= 0;
  }
  EXPECT_EQ(used, 15);
  ASSERT_EQ(loader->bad_images().size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(loader->bad_images()[i].key, bad[i].key);
    EXPECT_EQ(loader->bad_images()[i].reason, bad[i].reason);
  }
}

int64_t PeakMemoryKib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A decompression bomb. The valid PNG of 900 megapixels is small because it is a single colour;
// only its header counts.
TEST(BadImagesTest, BombsAreRefusedWithoutMemory) {
  std::vector<std::byte> jpeg = EncodeJpeg(DrawImage(400, 300));
  PatchJpegSize(32767, 32767, &jpeg);
  std::vector<std::byte> png = Encode(".png", cv::Mat(8, 8, CV_8UC3, cv::Scalar(1, 2, 3)));
  for (const size_t offset : {16, 20}) {  // 30000 = 0x7530
    png[offset] = png[offset + 1] = std::byte{0};
    png[offset + 2] = std::byte{0x75};
    png[offset + 3] = std::byte{0x30};
  }
  std::vector<std::byte> webp = Bytes("RIFF\x12\0\0\0WEBPVP8L\5\0\0\0\x2F\xFF\xFF\xFF\x0F\0"sv);
  MemoryDataset dataset;
  dataset.Add("a.jpg", 0, jpeg);
  dataset.Add("b.jpg", 0, png);
  dataset.Add("c.jpg", 0, Bytes("II*\0\x08\0\0\0"sv));
  dataset.Add("d.jpg", 0, Bytes("\x76\x2F\x31\x01\x02\0\0\0"sv));
  dataset.Add("e.jpg", 0, Bytes("CDF\x01 claimed by GDAL"sv));
  dataset.Add("f.jpg", 0, Bytes("P6 30000 30000 255 "sv));
  dataset.Add("g.jpg", 0, webp);
  std::vector<int64_t> indices(7);
  std::iota(indices.begin(), indices.end(), 0);
  DataConfig config;
  config.set_workers(1);
  EXPECT_EQ(ScanImages(dataset, {}, config, true)->size(),
            0U);  // so that the threads' stacks are allocated
  const int64_t before = PeakMemoryKib();
  const std::vector<BadImage> bad = ScanImages(dataset, indices, config, /*decode=*/true).value();
  EXPECT_LT(PeakMemoryKib() - before, 10 * 1024);
  ASSERT_EQ(bad.size(), 7U);
  EXPECT_THAT(bad[0].reason, HasSubstr("max_side"));
  EXPECT_THAT(bad[1].reason, HasSubstr("max_side"));
  EXPECT_THAT(bad[2].reason, HasSubstr("TIFF"));
  EXPECT_THAT(bad[3].reason, HasSubstr("OpenEXR"));
  EXPECT_THAT(bad[4].reason, HasSubstr("is not a JPEG, PNG, BMP, WebP or TIFF image"));
  EXPECT_THAT(bad[5].reason, HasSubstr("is not a JPEG, PNG, BMP, WebP or TIFF image"));
  EXPECT_THAT(bad[6].reason, HasSubstr("is 16384 x 16384 pixels, more than"));
}

}  // namespace
}  // namespace ringtail
