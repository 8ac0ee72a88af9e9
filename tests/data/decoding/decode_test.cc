#include "data/decoding/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>

#include "core/random.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

using Colour = JpegOptions::Colour;

ImageHeader Inspect(const std::vector<std::byte>& bytes) {
  return InspectImage(bytes, BadImagesConfig()).value();
}

Image DecodeWhole(const std::vector<std::byte>& bytes, int32_t denominator = 1) {
  const ImageHeader header = Inspect(bytes);
  Image image;
  const Status status =
      DecodeRegion(bytes, header, WholeRegion(header.width, header.height, denominator), &image);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return image;
}

Status DecodeStatus(const std::vector<std::byte>& bytes) {
  const ImageHeader header = Inspect(bytes);
  Image image;
  return DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), &image);
}

std::vector<std::byte> EncodeWithOpenCv(const std::string& extension, const cv::Mat& image) {
  std::vector<uint8_t> encoded;
  EXPECT_TRUE(cv::imencode(extension, image, encoded));
  const auto* first = reinterpret_cast<const std::byte*>(encoded.data());
  return {first, first + encoded.size()};
}

cv::Mat ToBgr(const Image& image) {
  const cv::Mat rgb(image.height, image.width, CV_8UC3, const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  return bgr;
}

struct Kind {
  const char* name;
  JpegOptions options;
};

class JpegKindTest : public testing::TestWithParam<Kind> {};

TEST_P(JpegKindTest, LooksLikeTheImageThatWasEncoded) {
  const Image image = DrawImage(203, 157);
  const Image decoded = DecodeWhole(EncodeJpeg(image, GetParam().options));
  if (GetParam().options.colour == Colour::kGrey) {
    for (size_t i = 0; i < decoded.pixels.size(); i += kChannels) {
      ASSERT_EQ(decoded.pixels[i], decoded.pixels[i + 1]);
      ASSERT_NEAR(decoded.pixels[i], image.pixels[i + 1], 40);
    }
  } else {
    EXPECT_LT(Compare(image, decoded).mean, 6);
  }
}

// The cache relies on this.
TEST_P(JpegKindTest, ARegionHasTheBitsOfTheWholeImage) {
  for (const auto& [width, height] : {std::pair{203, 157}, {64, 48}, {17, 131}}) {
    const std::vector<std::byte> bytes = EncodeJpeg(DrawImage(width, height), GetParam().options);
    const ImageHeader header = Inspect(bytes);
    Rng rng(RngKey(7).With(kTestStream));
    for (const int32_t denominator : {1, 2, 4, 8, 16}) {
      const Image whole = DecodeWhole(bytes, denominator);
      for (int i = 0; i < 40; ++i) {
        Region region{denominator};
        region.width = 1 + static_cast<int32_t>(rng.Below(whole.width));
        region.height = 1 + static_cast<int32_t>(rng.Below(whole.height));
        region.x = static_cast<int32_t>(rng.Below(whole.width - region.width + 1));
        region.y = static_cast<int32_t>(rng.Below(whole.height - region.height + 1));
        Image part;
        ASSERT_TRUE(DecodeRegion(bytes, header, region, &part).ok());
        ASSERT_EQ(part.width, region.width);
        ASSERT_EQ(part.height, region.height);
        for (int32_t y = 0; y < region.height; ++y) {
          ASSERT_EQ(std::memcmp(part.Row(y), whole.Row(region.y + y) + region.x * kChannels,
                                static_cast<size_t>(region.width) * kChannels),
                    0)
              << width << "x" << height << " 1/" << denominator << " at " << region.x << ","
              << region.y << " size " << region.width << "x" << region.height << " row " << y;
        }
      }
    }
  }
}

TEST_P(JpegKindTest, ShrinkingIsCloseToAveragingBlocks) {
  const std::vector<std::byte> bytes = EncodeJpeg(DrawImage(256, 192), GetParam().options);
  Image whole = DecodeWhole(bytes);
  const cv::Mat full(whole.height, whole.width, CV_8UC3, whole.pixels.data());
  for (const int32_t denominator : {2, 4, 8, 16}) {
    const Image shrunk = DecodeWhole(bytes, denominator);
    Image averaged;
    averaged.Reset(256 / denominator, 192 / denominator);
    cv::Mat target(averaged.height, averaged.width, CV_8UC3, averaged.pixels.data());
    cv::resize(full, target, target.size(), 0, 0, cv::INTER_AREA);
    EXPECT_LT(Compare(shrunk, averaged).mean, 10)
        << "1/" << denominator;  // 4:1:1 has coarse chroma
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, JpegKindTest,
    testing::Values(Kind{"Chroma420", {}}, Kind{"Chroma422", {.vertical_sampling = 1}},
                    Kind{"Chroma440", {.horizontal_sampling = 1}},
                    Kind{"Chroma444", {.horizontal_sampling = 1, .vertical_sampling = 1}},
                    Kind{"Chroma411", {.horizontal_sampling = 4, .vertical_sampling = 1}},
                    Kind{"Grey", {.colour = Colour::kGrey}},
                    Kind{"Progressive", {.progressive = true}},
                    Kind{"ProgressiveGrey", {.colour = Colour::kGrey, .progressive = true}},
                    Kind{"Restarts", {.restart_rows = 1}}, Kind{"Cmyk", {.colour = Colour::kCmyk}},
                    Kind{"AdobeCmyk", {.colour = Colour::kAdobeInvertedCmyk}},
                    Kind{"Ycck", {.colour = Colour::kYcck, .quality = 95}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DecodeTest, PngAndBmpKeepTheirPixels) {
  const Image image = DrawImage(61, 47);
  for (const char* extension : {".png", ".bmp"}) {
    const Image decoded = DecodeWhole(EncodeWithOpenCv(extension, ToBgr(image)));
    EXPECT_EQ(Compare(image, decoded).max, 0) << extension;
  }
}

TEST(DecodeTest, ARegionOfAPngHasTheBitsOfTheWholeImage) {
  const std::vector<std::byte> bytes = EncodeWithOpenCv(".png", ToBgr(DrawImage(61, 47)));
  for (const int32_t denominator : {1, 2, 4}) {
    const Image whole = DecodeWhole(bytes, denominator);
    const Region region{denominator, 3, 2, whole.width - 4, whole.height - 3};
    Image part;
    ASSERT_TRUE(DecodeRegion(bytes, Inspect(bytes), region, &part).ok());
    for (int32_t y = 0; y < part.height; ++y) {
      ASSERT_EQ(std::memcmp(part.Row(y), whole.Row(y + 2) + 3 * kChannels,
                            static_cast<size_t>(part.width) * kChannels),
                0);
    }
  }
}

TEST(DecodeTest, SixteenBitsAreReducedToEight) {
  cv::Mat deep;
  const Image image = DrawImage(40, 30);
  ToBgr(image).convertTo(deep, CV_16U, 257);
  EXPECT_EQ(Compare(image, DecodeWhole(EncodeWithOpenCv(".png", deep))).max, 0);
}

TEST(DecodeTest, TransparencyIsBlendedWithWhite) {
  cv::Mat bgra(1, 3, CV_8UC4);
  bgra.at<cv::Vec4b>(0, 0) = {10, 20, 30, 255};
  bgra.at<cv::Vec4b>(0, 1) = {10, 20, 30, 0};
  bgra.at<cv::Vec4b>(0, 2) = {0, 0, 0, 128};
  const Image decoded = DecodeWhole(EncodeWithOpenCv(".png", bgra));
  EXPECT_EQ(decoded.pixels, (std::vector<uint8_t>{30, 20, 10, 255, 255, 255, 127, 127, 127}));
}

TEST(DecodeTest, GreyPngBecomesRgb) {
  const cv::Mat grey(2, 2, CV_8UC1, cv::Scalar(77));
  EXPECT_EQ(DecodeWhole(EncodeWithOpenCv(".png", grey)).pixels, std::vector<uint8_t>(12, 77));
}

TEST(DecodeTest, ATruncatedJpegNamesTheRow) {
  std::vector<std::byte> bytes = EncodeJpeg(DrawImage(200, 160), {.quality = 95});
  bytes.resize(bytes.size() / 2);
  const Status status = DecodeStatus(bytes);
  ASSERT_FALSE(status.ok());
  int row = 0, rows = 0;
  ASSERT_EQ(std::sscanf(status.message().c_str(), "is truncated after %d of %d rows", &row, &rows),
            2)
      << status.message();
  EXPECT_EQ(rows, 160);
  EXPECT_GT(row, 40);
  EXPECT_LT(row, 120);
}

// A crop above the gap must not make a truncated image usable in one epoch and not in the next.
TEST(DecodeTest, ATruncatedJpegIsRefusedWhateverTheRegion) {
  std::vector<std::byte> bytes = EncodeJpeg(DrawImage(200, 160), {.quality = 95});
  bytes.resize(bytes.size() * 3 / 4);
  Image image;
  EXPECT_FALSE(DecodeRegion(bytes, Inspect(bytes), {1, 0, 0, 200, 8}, &image).ok());
}

TEST(DecodeTest, AProgressiveJpegWithoutItsLastScansIsRefused) {
  std::vector<std::byte> bytes =
      EncodeJpeg(DrawImage(200, 160), {.quality = 95, .progressive = true});
  bytes.resize(bytes.size() * 3 / 4);
  EXPECT_FALSE(DecodeStatus(bytes).ok());
}

TEST(DecodeTest, AMissingEndMarkerAloneIsNoError) {
  std::vector<std::byte> bytes = EncodeJpeg(DrawImage(64, 64));
  const Image before = DecodeWhole(bytes);
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(Compare(before, DecodeWhole(bytes)).max, 0);
}

TEST(DecodeTest, JunkAfterAndWithinAJpegIsIgnored) {
  std::vector<std::byte> bytes = EncodeJpeg(DrawImage(64, 64));
  const Image before = DecodeWhole(bytes);
  const std::vector<std::byte> junk(99, std::byte{0x55});
  std::vector<std::byte> behind = bytes, within = bytes;
  behind.insert(behind.end(), junk.begin(), junk.end());
  within.insert(within.end() - 2, junk.begin(), junk.end());
  testing::internal::CaptureStderr();
  EXPECT_EQ(Compare(before, DecodeWhole(behind)).max, 0);
  EXPECT_EQ(Compare(before, DecodeWhole(within)).max, 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(DecodeTest, ScrambledDataDoesNotCrash) {
  for (const bool progressive : {false, true}) {
    const std::vector<std::byte> bytes =
        EncodeJpeg(DrawImage(96, 80), {.progressive = progressive});
    const ImageHeader header = Inspect(bytes);
    Rng rng(RngKey(3).With(kTestStream));
    for (int i = 0; i < 300; ++i) {
      std::vector<std::byte> scrambled = bytes;
      const size_t first = bytes.size() / 2;
      for (int k = 0; k < 8; ++k) {
        scrambled[first + rng.Below(bytes.size() - first)] = static_cast<std::byte>(rng.Below(256));
      }
      const auto inspected = InspectImage(scrambled, BadImagesConfig());
      if (!inspected.ok()) continue;
      Image image;
      (void)DecodeRegion(scrambled, *inspected, WholeRegion(header.width, header.height, 1),
                         &image);
      ASSERT_EQ(image.width, header.width);
    }
  }
}

TEST(DecodeTest, ACorruptPngIsRefused) {
  std::vector<std::byte> bytes = EncodeWithOpenCv(".png", ToBgr(DrawImage(100, 100)));
  bytes[bytes.size() / 2] ^= std::byte{0x55};
  EXPECT_EQ(DecodeStatus(bytes).message(), "cannot be decoded: it is truncated or corrupt");
}

// The progressive `jpeg` with copies of its last scan: a refinement, which the syntax allows any
// number of times.
std::vector<std::byte> WithMoreScans(const std::vector<std::byte>& jpeg, int more) {
  size_t scan = jpeg.size();
  while (jpeg[scan - 2] != std::byte{0xFF} || jpeg[scan - 1] != std::byte{0xDA}) --scan;
  const std::vector<std::byte> last(jpeg.begin() + static_cast<int64_t>(scan) - 2, jpeg.end() - 2);
  std::vector<std::byte> many(jpeg.begin(), jpeg.end() - 2);
  for (int i = 0; i < more; ++i) many.insert(many.end(), last.begin(), last.end());
  many.insert(many.end(), jpeg.end() - 2, jpeg.end());
  return many;
}

TEST(DecodeTest, EndlessScansAreRefused) {
  const auto jpeg = EncodeJpeg(DrawImage(32, 32), {.progressive = true});
  EXPECT_EQ(DecodeStatus(WithMoreScans(jpeg, 200)).message(),
            "cannot be decoded: it has more than 100 scans, of 32 x 32 pixels each");
}

// Each scan costs a pass over the image, so a large image may have fewer.
TEST(DecodeTest, TheLargerTheImageTheFewerScans) {
  const Image tile = DrawImage(64, 64);
  Image large;
  large.Reset(8000, 4000);  // 32 megapixels: 40 scans
  for (int32_t y = 0; y < large.height; ++y) {
    for (int32_t x = 0; x < large.width; x += tile.width) {
      std::memcpy(large.Row(y) + x * kChannels, tile.Row(y % tile.height), tile.width * kChannels);
    }
  }
  const auto jpeg = EncodeJpeg(large, {.quality = 10, .progressive = true});
  EXPECT_EQ(DecodeStatus(WithMoreScans(jpeg, 60)).message(),
            "cannot be decoded: it has more than 40 scans, of 8000 x 4000 pixels each");
}

}  // namespace
}  // namespace ringtail
