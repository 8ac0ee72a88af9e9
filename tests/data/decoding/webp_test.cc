// WebP: what the guard lets through, and what is decoded of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/decoding/byte_reader.h"
#include "data/decoding/decode.h"
#include "data/decoding/exif.h"
#include "data/decoding/image_guard.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::HasSubstr;
using FileBytes = std::vector<std::byte>;

constexpr int kLossless = 101;  // OpenCV's quality

FileBytes Encode(const cv::Mat& bgr, int quality) {
  std::vector<uint8_t> encoded;
  EXPECT_TRUE(cv::imencode(".webp", bgr, encoded, {cv::IMWRITE_WEBP_QUALITY, quality}));
  const auto* first = reinterpret_cast<const std::byte*>(encoded.data());
  return {first, first + encoded.size()};
}

FileBytes Encode(const Image& image, int quality = kLossless) {
  const cv::Mat rgb(image.height, image.width, CV_8UC3, const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  return Encode(bgr, quality);
}

void Append(const FileBytes& more, FileBytes* bytes) {
  bytes->insert(bytes->end(), more.begin(), more.end());
}

FileBytes Little(uint32_t value, int size) {
  FileBytes bytes;
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xFF));
  return bytes;
}

FileBytes Chunk(std::string_view name, const FileBytes& content) {
  FileBytes chunk = Bytes(name);
  Append(Little(content.size(), 4), &chunk);
  Append(content, &chunk);
  if (content.size() % 2 != 0) chunk.push_back(std::byte{0});
  return chunk;
}

FileBytes Riff(const FileBytes& chunks) {
  FileBytes file = Bytes("RIFF");
  Append(Little(chunks.size() + 4, 4), &file);
  Append(Bytes("WEBP"), &file);
  Append(chunks, &file);
  return file;
}

// The image chunk of a file in the simple layout.
FileBytes ImageChunk(const FileBytes& simple) { return {simple.begin() + 12, simple.end()}; }

FileBytes Extended(uint32_t flags, int32_t width, int32_t height, const FileBytes& chunks) {
  FileBytes content = Little(flags, 4);
  Append(Little(width - 1, 3), &content);
  Append(Little(height - 1, 3), &content);
  FileBytes all = Chunk("VP8X", content);
  Append(chunks, &all);
  return Riff(all);
}

std::string Refusal(const FileBytes& bytes) {
  const auto header = InspectImage(bytes, {});
  EXPECT_FALSE(header.ok()) << "was let through";
  return header.status().message();
}

StatusOr<Image> Decode(const FileBytes& bytes) {
  RT_ASSIGN_OR_RETURN(const ImageHeader header, InspectImage(bytes, {}));
  Image image;
  RT_RETURN_IF_ERROR(
      DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), &image));
  return image;
}

TEST(WebpHeaderTest, ReadsTheSize) {
  const Image image = DrawImage(37, 21);
  for (const int quality : {kLossless, 80}) {
    const FileBytes simple = Encode(image, quality);
    EXPECT_EQ(InspectImage(simple, {}).value(), (ImageHeader{ImageFormat::kWebp, 37, 21}));
    EXPECT_EQ(InspectImage(Extended(0, 37, 21, ImageChunk(simple)), {}).value(),
              (ImageHeader{ImageFormat::kWebp, 37, 21}));
  }
}

TEST(WebpHeaderTest, EveryTruncationIsRefused) {
  for (const int quality : {kLossless, 80}) {
    const FileBytes whole = Encode(DrawImage(37, 21), quality);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(InspectImage(std::span(whole).first(size), {}).ok()) << size;
    }
    EXPECT_EQ(Refusal({whole.begin(), whole.begin() + 40}),
              "is a WebP image truncated after 40 bytes");
  }
}

TEST(WebpHeaderTest, AnimationsAreRefusedByName) {
  constexpr uint32_t kAnimation = 2;
  const auto animated = HasSubstr("is an animated WebP image, which is not read");
  const FileBytes image = ImageChunk(Encode(DrawImage(37, 21)));
  EXPECT_THAT(Refusal(Extended(kAnimation, 37, 21, image)), animated);
  FileBytes frames = Chunk("ANMF", Bytes("frame"));
  Append(image, &frames);
  EXPECT_THAT(Refusal(Extended(0, 37, 21, frames)), animated);
}

TEST(WebpHeaderTest, WhatCannotBeIsRefused) {
  const auto broken = HasSubstr("broken or truncated header");
  const FileBytes image = ImageChunk(Encode(DrawImage(37, 21)));
  EXPECT_THAT(Refusal(Extended(0, 38, 21, image)), broken) << "two sizes";
  EXPECT_THAT(Refusal(Extended(0, 37, 21, {})), broken) << "no image";
  EXPECT_THAT(Refusal(Extended(0, 1 << 24, 1 << 24, {})), broken);
  EXPECT_THAT(Refusal(Riff(Chunk("ICCP", image))), broken);
  EXPECT_THAT(Refusal(Bytes("RIFX\x10\0\0\0WEBPVP8 "sv)), broken);
  // A lossless header: signature, 14 bits for each side less one, alpha, version.
  const auto lossless = [](uint32_t bits) {
    FileBytes content = Bytes("\x2F");
    Append(Little(bits, 4), &content);
    return Riff(Chunk("VP8L", content));
  };
  EXPECT_EQ(InspectImage(lossless(4 | 2 << 14), {}).value(),
            (ImageHeader{ImageFormat::kWebp, 5, 3}));
  EXPECT_THAT(Refusal(lossless(1U << 29)), broken) << "another version";
  EXPECT_THAT(Refusal(lossless(0x0FFFFFFF)), HasSubstr("is 16384 x 16384 pixels, more than"));
  // A lossy one: frame tag, start code, 14 bits for each side, and their scales.
  const auto lossy = [](uint32_t tag, uint32_t code, uint32_t width, uint32_t height) {
    FileBytes content = Little(tag, 3);
    for (const auto& part : {Little(code, 3), Little(width, 2), Little(height, 2)}) {
      Append(part, &content);
    }
    return Riff(Chunk("VP8 ", content));
  };
  EXPECT_EQ(InspectImage(lossy(0x10, 0x2A019D, 0x4005, 3), {}).value(),
            (ImageHeader{ImageFormat::kWebp, 5, 3}));
  EXPECT_THAT(Refusal(lossy(0x11, 0x2A019D, 5, 3)), broken) << "no key frame";
  EXPECT_THAT(Refusal(lossy(0x10, 0x2A019E, 5, 3)), broken);
  EXPECT_THAT(Refusal(lossy(0x10, 0x2A019D, 0, 3)), broken);
}

TEST(WebpHeaderTest, ReadsExifOrientation) {
  const FileBytes image = ImageChunk(Encode(DrawImage(37, 21)));
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    FileBytes exif = ExifBlock(orientation, orientation % 2 == 0);
    for (int i = 0; i < 2; ++i) {
      FileBytes chunks = image;
      Append(Chunk("EXIF", exif), &chunks);
      const auto header = InspectImage(Extended(8, 37, 21, chunks), {}).value();
      EXPECT_EQ(header.orientation, OrientationOfExif(orientation));
      exif.erase(exif.begin(), exif.begin() + 6);  // "Exif" and zeros: most files have none
    }
  }
}

TEST(WebpTest, KeepsItsPixels) {
  const Image image = DrawImage(61, 47);
  EXPECT_EQ(Compare(Decode(Encode(image)).value(), image).max, 0);
  EXPECT_LT(Compare(Decode(Encode(image, 95)).value(), image).mean, 6);
  const FileBytes extended = Extended(0, 61, 47, ImageChunk(Encode(image)));
  EXPECT_EQ(Compare(Decode(extended).value(), image).max, 0);
}

TEST(WebpTest, ARegionHasTheBitsOfTheWholeImage) {
  for (const int quality : {kLossless, 80}) {
    const FileBytes bytes = Encode(DrawImage(61, 47), quality);
    const ImageHeader header = InspectImage(bytes, {}).value();
    Image half, part;
    ASSERT_TRUE(DecodeRegion(bytes, header, WholeRegion(61, 47, 2), &half).ok());
    ASSERT_TRUE(DecodeRegion(bytes, header, {2, 3, 2, 20, 15}, &part).ok());
    for (int32_t y = 0; y < 15; ++y) {
      ASSERT_EQ(std::memcmp(part.Row(y), half.Row(2 + y) + 3 * kChannels, 20 * kChannels), 0);
    }
  }
}

TEST(WebpTest, TransparencyIsBlendedWithWhite) {
  cv::Mat bgra(1, 3, CV_8UC4);
  bgra.at<cv::Vec4b>(0, 0) = {10, 20, 30, 255};
  bgra.at<cv::Vec4b>(0, 1) = {10, 20, 30, 0};
  bgra.at<cv::Vec4b>(0, 2) = {0, 0, 0, 128};
  EXPECT_EQ(Decode(Encode(bgra, kLossless)).value().pixels,
            (std::vector<uint8_t>{30, 20, 10, 255, 255, 255, 127, 127, 127}));
  // Lossy files have alpha in a chunk of its own.
  cv::Mat half(16, 16, CV_8UC4, cv::Scalar(0, 0, 0, 128));
  const Image decoded = Decode(Encode(half, 90)).value();
  for (const uint8_t value : decoded.pixels) EXPECT_NEAR(value, 127, 4);
}

// Neither a crash nor a word, whatever is in the file.
TEST(WebpTest, ScrambledFilesAreHarmless) {
  testing::internal::CaptureStderr();
  Rng rng(RngKey(5).With(kTestStream));
  int decoded = 0;
  for (const int quality : {kLossless, 80}) {
    const FileBytes bytes = Encode(DrawImage(61, 47), quality);
    for (int i = 0; i < 300; ++i) {
      FileBytes scrambled = bytes;
      for (int k = 0; k < 4; ++k) {
        const size_t size = rng.Below(2) == 0 ? 40 : bytes.size();
        scrambled[rng.Below(size)] = static_cast<std::byte>(rng.Below(256));
      }
      decoded += Decode(scrambled).ok() ? 1 : 0;
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(decoded, 20);
}

}  // namespace
}  // namespace ringtail
