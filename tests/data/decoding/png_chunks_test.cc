#include "data/decoding/png_chunks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/decoding/decode.h"
#include "data/decoding/image_guard.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only

using ByteVector = std::vector<std::byte>;

constexpr size_t kHeaderEnd = 8 + 25;  // magic and IHDR
constexpr size_t kContentOfChunk = 8, kEndChunk = 12;

void Append(std::span<const std::byte> more, ByteVector* bytes) {
  for (const std::byte b : more) bytes->push_back(b);
}

ByteVector Big(uint32_t value) {
  ByteVector bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(std::byte(value >> shift & 0xFF));
  return bytes;
}

// The checksum of PNG (its specification, annex D): without it, the decoder would skip a chunk.
uint32_t Crc32(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

ByteVector Chunk(std::string_view name, const ByteVector& content) {
  ByteVector checked = Bytes(name);
  Append(content, &checked);
  ByteVector chunk = Big(static_cast<uint32_t>(content.size()));
  Append(checked, &chunk);
  Append(Big(Crc32(checked)), &chunk);
  return chunk;
}

ByteVector Png(const cv::Mat& image) {
  std::vector<uint8_t> encoded;
  EXPECT_TRUE(cv::imencode(".png", image, encoded));
  const auto* first = reinterpret_cast<const std::byte*>(encoded.data());
  return {first, first + encoded.size()};
}

// Compressed zeros, side x side bytes, as in a decompression bomb.
ByteVector CompressedZeros(int side) {
  const ByteVector png = Png(cv::Mat::zeros(side, side, CV_8UC1));
  ByteVector zeros;
  for (size_t at = kHeaderEnd; at + kEndChunk < png.size();) {
    const auto length =
        std::to_integer<uint32_t>(png[at]) << 24 | std::to_integer<uint32_t>(png[at + 1]) << 16 |
        std::to_integer<uint32_t>(png[at + 2]) << 8 | std::to_integer<uint32_t>(png[at + 3]);
    Append(std::span(png).subspan(at + kContentOfChunk, length), &zeros);
    at += length + 12;
  }
  return zeros;
}

ByteVector Text(std::string_view keyword, const ByteVector& compressed) {
  ByteVector content = Bytes(keyword);
  Append(Bytes("\0\0"sv), &content);  // the keyword's end; compressed by deflate
  Append(compressed, &content);
  return content;
}

// `png` with copies of `chunk` after its header.
ByteVector With(const ByteVector& png, const ByteVector& chunk, int times = 1) {
  ByteVector result(png.begin(), png.begin() + kHeaderEnd);
  for (int i = 0; i < times; ++i) Append(chunk, &result);
  Append(std::span(png).subspan(kHeaderEnd), &result);
  return result;
}

Image Decode(const ByteVector& bytes) {
  const ImageHeader header = InspectImage(bytes, BadImagesConfig()).value();
  Image image;
  const Status status =
      DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), &image);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return image;
}

cv::Mat Drawing() {
  Image drawn = DrawImage(31, 17);
  return cv::Mat(drawn.height, drawn.width, CV_8UC3, drawn.pixels.data()).clone();
}

TEST(PngChunksTest, CopiesNothingIfNothingIsLeftOut) {
  const ByteVector png = Png(Drawing());
  ByteVector kept;
  const auto chunks = PixelChunks(png, &kept);
  EXPECT_EQ(chunks.data(), png.data());
  EXPECT_EQ(chunks.size(), png.size());
  EXPECT_EQ(kept.capacity(), 0U);
}

TEST(PngChunksTest, ABombOfTextNeverReachesTheDecoder) {
  const ByteVector png = Png(Drawing());
  const ByteVector zeros = CompressedZeros(2048);  // 4 MiB each when inflated
  ASSERT_LT(zeros.size(), 8192U);
  for (const std::string_view name : {"zTXt"sv, "iCCP"sv}) {
    const ByteVector bomb = With(png, Chunk(name, Text("Comment", zeros)), 100);
    ByteVector kept;
    const auto chunks = PixelChunks(bomb, &kept);
    EXPECT_EQ(ByteVector(chunks.begin(), chunks.end()), png) << name;
    EXPECT_LT(kept.capacity(), 2 * png.size() + kHeaderEnd);
    EXPECT_EQ(Compare(Decode(bomb), Decode(png)).max, 0);
  }
}

TEST(PngChunksTest, LeavesOutChunksThatNoPixelDependsOn) {
  const ByteVector png = Png(Drawing());
  ByteVector marked = png;
  for (const std::string_view name :
       {"tEXt"sv, "iTXt"sv, "eXIf"sv, "gAMA"sv, "cHRM"sv, "sRGB"sv, "sBIT"sv, "pHYs"sv, "tIME"sv,
        "sPLT"sv, "hIST"sv, "bKGD"sv, "acTL"sv, "prVt"sv}) {
    marked = With(marked, Chunk(name, Bytes("anything")));
  }
  Append(Bytes("behind the end"), &marked);
  ByteVector kept;
  const auto chunks = PixelChunks(marked, &kept);
  EXPECT_EQ(ByteVector(chunks.begin(), chunks.end()), png);
  EXPECT_EQ(Compare(Decode(marked), Decode(png)).max, 0);
}

// These values of gamma and bit depth would change the pixels if the decoder applied them.
TEST(PngChunksTest, TheDecoderIgnoresTheseChunks) {
  const ByteVector png = Png(Drawing());
  const auto pixels = [](const ByteVector& bytes) {
    const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8U,
                          const_cast<std::byte*>(bytes.data()));
    return cv::imdecode(encoded, cv::IMREAD_UNCHANGED);
  };
  const cv::Mat expected = pixels(png);
  const ByteVector exif =
      ExifBlock(6, /*big_endian=*/true);  // "Exif\0\0", then the content of eXIf
  for (const ByteVector& chunk :
       {Chunk("gAMA", Big(20000)), Chunk("sRGB", ByteVector(1)),
        Chunk("sBIT", ByteVector(3, std::byte{4})), Chunk("bKGD", ByteVector(6)),
        Chunk("eXIf", ByteVector(exif.begin() + 6, exif.end()))}) {
    const cv::Mat actual = pixels(With(png, chunk));
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_EQ(cv::norm(actual, expected, cv::NORM_INF), 0);
  }
}

// One row of palette indices 0 and 1: red, and a fully transparent green.
TEST(PngChunksTest, PaletteAndTransparencyStay) {
  ByteVector png = Bytes("\x89PNG\r\n\x1A\n"sv);
  Append(Chunk("IHDR", Bytes("\0\0\0\2\0\0\0\1\x08\x03\0\0\0"sv)), &png);
  Append(Chunk("PLTE", Bytes("\xFF\0\0\0\xFF\0"sv)), &png);
  Append(Chunk("tRNS", Bytes("\xFF\0"sv)), &png);
  Append(Chunk("zTXt", Text("Comment", {})), &png);
  // zlib: one stored block of filter 0, index 0, index 1; Adler-32 of it.
  Append(Chunk("IDAT", Bytes("\x78\x01\x01\x03\0\xFC\xFF\0\0\1\0\4\0\2"sv)), &png);
  Append(Chunk("IEND", {}), &png);
  const Image image = Decode(png);
  const std::vector<uint8_t> expected = {255, 0, 0, 255, 255, 255};  // on white
  EXPECT_EQ(std::vector<uint8_t>(image.pixels.begin(), image.pixels.begin() + 6), expected);
}

TEST(PngChunksTest, EveryTruncationHasNoEnd) {
  const ByteVector png = Png(Drawing());
  EXPECT_TRUE(HasPngEnd(png));
  for (size_t size = 0; size < png.size(); ++size) {
    EXPECT_FALSE(HasPngEnd(std::span(png).first(size))) << size;
  }
}

}  // namespace
}  // namespace ringtail
