#include "data/decoding/image_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/decoding/exif.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

using namespace std::string_literals;       // NOLINT(google-build-using-namespace): literals only
using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only
using testing::HasSubstr;

std::string Refusal(const std::vector<std::byte>& bytes, const BadImagesConfig& limits = {}) {
  const auto header = InspectImage(bytes, limits);
  EXPECT_FALSE(header.ok()) << "was let through";
  return header.status().message();
}

void AppendBig(uint32_t value, std::vector<std::byte>* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes->push_back(static_cast<std::byte>(value >> shift & 0xFF));
}

void AppendLittle(uint32_t value, int size, std::vector<std::byte>* bytes) {
  for (int i = 0; i < size; ++i) bytes->push_back(static_cast<std::byte>(value >> 8 * i & 0xFF));
}

// Signature, IHDR and IEND: enough for the guard, without pixels.
std::vector<std::byte> PngHeader(uint32_t width, uint32_t height, bool end = true) {
  std::vector<std::byte> bytes = Bytes("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR"sv);
  AppendBig(width, &bytes);
  AppendBig(height, &bytes);
  for (const char c : "\x08\x02\0\0\0????"sv) bytes.push_back(static_cast<std::byte>(c));
  if (end) {
    for (const char c : "\0\0\0\0IEND????"sv) bytes.push_back(static_cast<std::byte>(c));
  }
  return bytes;
}

std::vector<std::byte> BmpHeader(uint32_t width, uint32_t height, uint32_t bits,
                                 size_t pixel_bytes) {
  std::vector<std::byte> bytes = Bytes("BM");
  AppendLittle(0, 4, &bytes), AppendLittle(0, 4, &bytes), AppendLittle(54, 4, &bytes);
  AppendLittle(40, 4, &bytes), AppendLittle(width, 4, &bytes), AppendLittle(height, 4, &bytes);
  AppendLittle(1, 2, &bytes), AppendLittle(bits, 2, &bytes);
  for (int i = 0; i < 6; ++i) AppendLittle(0, 4, &bytes);
  bytes.resize(bytes.size() + pixel_bytes);
  return bytes;
}

TEST(ImageGuardTest, ReadsTheSizeOfEachFormat) {
  const auto jpeg = InspectImage(EncodeJpeg(DrawImage(37, 21)), {}).value();
  EXPECT_EQ(jpeg, (ImageHeader{ImageFormat::kJpeg, 37, 21, 3, {}, true}));
  const auto png = InspectImage(PngHeader(640, 480), {}).value();
  EXPECT_EQ(png, (ImageHeader{ImageFormat::kPng, 640, 480}));
  const auto bmp = InspectImage(BmpHeader(5, 3, 24, 48), {}).value();
  EXPECT_EQ(bmp, (ImageHeader{ImageFormat::kBmp, 5, 3}));
  const auto top_down = InspectImage(BmpHeader(5, static_cast<uint32_t>(-3), 24, 48), {}).value();
  EXPECT_EQ(top_down.height, 3);
}

TEST(ImageGuardTest, ReadsComponentsAndProgressiveJpegs) {
  using Colour = JpegOptions::Colour;
  const Image image = DrawImage(37, 21);
  EXPECT_EQ(InspectImage(EncodeJpeg(image, {.colour = Colour::kGrey}), {})->components, 1);
  EXPECT_EQ(InspectImage(EncodeJpeg(image, {.colour = Colour::kYcck}), {})->components, 4);
  EXPECT_EQ(InspectImage(EncodeJpeg(image, {.progressive = true}), {})->width, 37);
}

TEST(ImageGuardTest, ReadsExifOrientation) {
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    const auto header =
        InspectImage(EncodeJpeg(DrawImage(37, 21), {.orientation = orientation}), {}).value();
    EXPECT_EQ(header.orientation, OrientationOfExif(orientation));
    EXPECT_EQ(header.upright_width(), orientation >= 5 ? 21 : 37);
    EXPECT_EQ(header.upright_height(), orientation >= 5 ? 37 : 21);
  }
}

TEST(ImageGuardTest, OtherFormatsAreRefusedByName) {
  EXPECT_EQ(Refusal(Bytes("GIF89a\x01\0\x01\0"sv)),
            "is a GIF image, which is not read; convert it to JPEG or PNG");
  EXPECT_THAT(Refusal(Bytes("II+\0abcd"sv)), HasSubstr("a BigTIFF image"));
  EXPECT_THAT(Refusal(Bytes("\x76\x2F\x31\x01 abcd"sv)), HasSubstr("an OpenEXR image"));
  EXPECT_THAT(Refusal(Bytes("\0\0\0\x18"
                            "ftypheic"sv)),
              HasSubstr("HEIC"));
  EXPECT_THAT(Refusal(Bytes("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv)), HasSubstr("Thumbs.db"));
  EXPECT_EQ(Refusal(Bytes("hello, world")),
            "is not a JPEG, PNG, BMP, WebP or TIFF image: it starts with 68 65 6C 6C");
  EXPECT_EQ(
      Refusal(Bytes("RTPACK\r\n and more"sv)),
      "is a packed file of `prepare` and no image; --data of `train` and `evaluate` takes it");
  EXPECT_EQ(Refusal(Bytes("PK\3\4\x14\0"sv)),
            "is a zip archive and no image; unpack it and give the unpacked folder");
  EXPECT_THAT(Refusal(Bytes("P")), HasSubstr("image: it starts with 50"));
  EXPECT_EQ(Refusal({}), "is empty");
}

TEST(ImageGuardTest, EveryTruncationOfAHeaderIsRefused) {
  const std::vector<std::byte> jpeg = EncodeJpeg(DrawImage(37, 21), {.orientation = 6});
  size_t scan = 0;
  while (jpeg[scan] != std::byte{0xFF} || jpeg[scan + 1] != std::byte{0xDA}) ++scan;
  constexpr size_t kScanHeaderBytes = 14;
  for (size_t size = 0; size < jpeg.size(); ++size) {
    const auto header = InspectImage(std::span(jpeg).first(size), {});
    ASSERT_EQ(header.ok(), size >= scan + kScanHeaderBytes)
        << size << ": " << header.status().message();
    if (header.ok()) {
      EXPECT_FALSE(header->complete) << size;
    }
  }
  EXPECT_TRUE(InspectImage(jpeg, {})->complete);
  const std::vector<std::byte> png = PngHeader(9, 9), bmp = BmpHeader(5, 3, 24, 48);
  for (size_t size = 0; size + 5 < png.size(); ++size) {
    EXPECT_FALSE(InspectImage(std::span(png).first(size), {}).ok()) << size;
  }
  for (size_t size = 0; size < bmp.size(); ++size) {
    EXPECT_FALSE(InspectImage(std::span(bmp).first(size), {}).ok()) << size;
  }
  EXPECT_THAT(Refusal(PngHeader(9, 9, /*end=*/false)), HasSubstr("truncated after 33 bytes"));
  EXPECT_EQ(Refusal(BmpHeader(5, 3, 24, 40)), "is a BMP image truncated after 2 of 3 rows");
}

TEST(ImageGuardTest, BrokenJpegHeadersAreRefused) {
  const std::vector<std::byte> jpeg = EncodeJpeg(DrawImage(37, 21));
  const auto with_size = [&](int32_t width, int32_t height) {
    std::vector<std::byte> patched = jpeg;
    PatchJpegSize(width, height, &patched);
    return patched;
  };
  EXPECT_EQ(Refusal(with_size(0, 21)), "is a JPEG image of 0 x 21 pixels");
  EXPECT_EQ(Refusal(with_size(37, 0)), "is a JPEG image of 37 x 0 pixels");
  EXPECT_THAT(Refusal(Bytes("\xFF\xD8\xFF\xD9"sv)), HasSubstr("ends before its pixels"));
  EXPECT_THAT(Refusal(Bytes("\xFF\xD8\xFF\xE0\0\1abc"sv)), HasSubstr("wrong length"));
  EXPECT_THAT(Refusal(Bytes("\xFF\xD8\xFF\xD8\xFF\xD8"sv)), HasSubstr("starts twice"));
  EXPECT_THAT(Refusal(Bytes("\xFF\xD8\xFF\xDA\0\x08\x01\x01\0\0\x3F\0"sv)),
              HasSubstr("without a frame header"));
  // Frame header: length 11, precision, height 16, width 16, components 1.
  const auto frame = [](char marker, char bits, char components) {
    std::string text = "\xFF\xD8\xFF?\0\x0B?\0\x10\0\x10?\x01\x11\0\xFF\xDA\0\x02"s;
    text[3] = marker, text[6] = bits, text[11] = components;
    return Bytes(text);
  };
  EXPECT_TRUE(InspectImage(frame('\xC0', 8, 1), {}).ok());
  EXPECT_THAT(Refusal(frame('\xC0', 12, 1)), HasSubstr("12 bits per sample"));
  EXPECT_THAT(Refusal(frame('\xC0', 8, 3)), HasSubstr("frame header has a wrong length"));
  EXPECT_THAT(Refusal(frame('\xC3', 8, 1)), HasSubstr("frame marker C3"));
}

TEST(ImageGuardTest, LimitsAreNamed) {
  BadImagesConfig limits;
  limits.set_max_side(1000);
  EXPECT_EQ(Refusal(PngHeader(1001, 1), limits),
            "is 1001 x 1 pixels, more than data.bad_images.max_side = 1000");
  EXPECT_TRUE(InspectImage(PngHeader(1000, 1000), limits).ok());
  limits.set_max_side(20000);
  limits.set_max_megapixels(2);
  EXPECT_EQ(Refusal(PngHeader(2000, 1001), limits),
            "is 2000 x 1001 pixels, more than data.bad_images.max_megapixels = 2");
  EXPECT_TRUE(InspectImage(PngHeader(2000, 1000), limits).ok());
  limits.set_max_file_mib(1);
  std::vector<std::byte> large = PngHeader(10, 10);
  large.resize((1 << 20) + 1);
  EXPECT_THAT(Refusal(large, limits), HasSubstr("max_file_mib = 1"));
}

TEST(ImageGuardTest, SizesThatOverflowAreRefused) {
  EXPECT_THAT(Refusal(PngHeader(0xFFFFFFFF, 1)), HasSubstr("4294967295"));
  EXPECT_THAT(Refusal(PngHeader(0, 1)), HasSubstr("0 x 1"));
  EXPECT_THAT(Refusal(PngHeader(0x7FFFFFFF, 0x7FFFFFFF)), HasSubstr("max_side"));
  EXPECT_THAT(Refusal(BmpHeader(0x7FFFFFFF, 0x7FFFFFFF, 32, 8)), HasSubstr("truncated after 0 of"));
  EXPECT_THAT(Refusal(BmpHeader(4, 0x80000000, 24, 48)), HasSubstr("is a BMP image of"));
  EXPECT_THAT(Refusal(BmpHeader(0x80000000, 4, 24, 48)), HasSubstr("is a BMP image of"));
}

}  // namespace
}  // namespace ringtail
