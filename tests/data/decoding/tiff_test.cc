// TIFF: what the guard lets through, and what is decoded of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "data/decoding/decode.h"
#include "data/decoding/exif.h"
#include "data/decoding/image_guard.h"
#include "tests/data/test_images.h"
#include "tests/data/tiff_images.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using Colour = TiffOptions::Colour;

constexpr int kShort = 3, kLong = 4;
constexpr size_t kPixelsAt = 512;

struct Entry {
  int type;
  std::vector<uint32_t> values;
};
using Entries = std::map<int, Entry>;  // by tag

// 8-bit RGB, 5 x 3 pixels, in one strip.
Entries Plain() {
  return {{256, {kShort, {5}}}, {257, {kShort, {3}}}, {258, {kShort, {8, 8, 8}}},
          {259, {kShort, {1}}}, {262, {kShort, {2}}}, {273, {kLong, {kPixelsAt}}},
          {277, {kShort, {3}}}, {278, {kShort, {3}}}, {279, {kLong, {45}}},
          {284, {kShort, {1}}}};
}

// Little endian: the directory, what does not fit into it, and from kPixelsAt on `pixel_bytes`.
std::vector<std::byte> File(const Entries& entries, size_t pixel_bytes = 45) {
  std::vector<std::byte> bytes(kPixelsAt + pixel_bytes, std::byte{0x40});
  const auto put = [&](size_t at, uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i & 0xFF);
  };
  put(0, 0x4949, 2), put(2, 42, 2), put(4, 8, 4);
  put(8, entries.size(), 2);
  size_t entry_at = 10, more_at = 10 + 12 * entries.size() + 4;
  for (const auto& [tag, entry] : entries) {
    const int size = entry.type == kShort ? 2 : 4;
    put(entry_at, tag, 2), put(entry_at + 2, entry.type, 2);
    put(entry_at + 4, entry.values.size(), 4);
    size_t at = entry_at + 8;
    put(at, 0, 4);
    if (entry.values.size() * size > 4) {
      put(at, more_at, 4);
      at = more_at;
      more_at += entry.values.size() * size;
    }
    for (const uint32_t value : entry.values) put(std::exchange(at, at + size), value, size);
    entry_at += 12;
  }
  put(entry_at, 0, 4);
  return bytes;
}

std::vector<std::byte> With(const Entries& changes, size_t pixel_bytes = 45) {
  Entries entries = Plain();
  for (const auto& [tag, entry] : changes) entries.insert_or_assign(tag, entry);
  return File(entries, pixel_bytes);
}

std::string Refusal(const std::vector<std::byte>& bytes) {
  const auto header = InspectImage(bytes, {});
  EXPECT_FALSE(header.ok()) << "was let through";
  return header.status().message();
}

StatusOr<Image> Decode(const std::vector<std::byte>& bytes) {
  RT_ASSIGN_OR_RETURN(const ImageHeader header, InspectImage(bytes, {}));
  Image image;
  RT_RETURN_IF_ERROR(
      DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), &image));
  return image;
}

TEST(TiffHeaderTest, ReadsTheSize) {
  const auto header = InspectImage(File(Plain()), {}).value();
  EXPECT_EQ(header, (ImageHeader{ImageFormat::kTiff, 5, 3}));
  EXPECT_EQ(Decode(File(Plain())).value().pixels, std::vector<uint8_t>(45, 0x40));
}

TEST(TiffHeaderTest, EveryTruncationIsRefused) {
  const std::vector<std::byte> whole = File(Plain());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(InspectImage(std::span(whole).first(size), {}).ok()) << size;
  }
  EXPECT_EQ(Refusal({whole.begin(), whole.end() - 1}), "is a TIFF image truncated after 556 bytes");
}

TEST(TiffHeaderTest, OtherKindsAreRefusedByName) {
  EXPECT_EQ(
      Refusal(With({{259, {kShort, {7}}}})),
      "is a TIFF image with compression 7 (none, LZW, Deflate and PackBits are read), which is "
      "not read; convert it to JPEG or PNG");
  for (const uint32_t other : {2, 3, 4, 6, 34712, 34887, 34925, 50000, 50001}) {
    EXPECT_THAT(Refusal(With({{259, {kLong, {other}}}})), HasSubstr("with compression"));
  }
  EXPECT_THAT(Refusal(With({{339, {kShort, {3, 3, 3}}}})), HasSubstr("3 x 8 bits")) << "floats";
  EXPECT_THAT(Refusal(With({{258, {kShort, {8, 8, 16}}}})), HasSubstr("3 x 8 bits")) << "unequal";
  EXPECT_THAT(Refusal(With({{258, {kShort, {32, 32, 32}}}})), HasSubstr("3 x 32 bits"));
  EXPECT_THAT(Refusal(With({{262, {kShort, {6}}}})), HasSubstr("(photometric interpretation 6)"));
  EXPECT_THAT(Refusal(With({{254, {kLong, {1}}}})), HasSubstr("reduced image"));
  const Entries four = {{277, {kShort, {4}}}, {258, {kShort, {8, 8, 8, 8}}}};
  EXPECT_THAT(Refusal(With(four)), HasSubstr("fourth channel of unknown meaning"));
  EXPECT_THAT(Refusal(Bytes(std::string_view("II+\0\x08\0\0\0", 8))), HasSubstr("a BigTIFF image"));
}

TEST(TiffHeaderTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(Refusal(With({{256, {kShort, {0}}}})), "is a TIFF image of 0 x 3 pixels");
  EXPECT_THAT(Refusal(With({{257, {kLong, {0xFFFFFFFF}}}})), HasSubstr("5 x 4294967295 pixels"));
  EXPECT_THAT(
      Refusal(With({{256, {kLong, {30000}}}, {257, {kLong, {30000}}}, {278, {kLong, {30000}}}})),
      HasSubstr("data.bad_images.max_side = 20000"));
  EXPECT_THAT(
      Refusal(With({{256, {kLong, {20000}}}, {257, {kLong, {20000}}}, {278, {kLong, {20000}}}})),
      HasSubstr("data.bad_images.max_megapixels = 64"));
  const auto broken = HasSubstr("broken or truncated header");
  EXPECT_THAT(Refusal(With({{278, {kShort, {0}}}})), broken);
  EXPECT_THAT(Refusal(With({{278, {kShort, {1}}}})), broken)
      << "three strips, one of them is listed";
  EXPECT_THAT(Refusal(With({{284, {kShort, {2}}}})), broken) << "three planes, one strip";
  EXPECT_THAT(Refusal(With({{284, {kShort, {9}}}})), broken);
  EXPECT_THAT(Refusal(With({{256, {/*ASCII*/ 2, {5}}}})), broken);
  EXPECT_THAT(Refusal(With({{273, {kLong, {600}}}})), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(With({{279, {kLong, {0xFFFFFFFF}}}})), HasSubstr("truncated"));
}

// libtiff would take the memory of a tile before it reads the first byte.
TEST(TiffHeaderTest, AHugeTileIsRefused) {
  const auto tile = [](uint32_t across, uint32_t down) {
    return With({{322, {kLong, {across}}},
                 {323, {kLong, {down}}},
                 {324, {kLong, {kPixelsAt}}},
                 {325, {kLong, {45}}}});
  };
  EXPECT_TRUE(InspectImage(tile(2048, 2048), {}).ok());
  EXPECT_EQ(Refusal(tile(2048, 2064)), "is a TIFF image of 5 x 3 pixels in tiles of 2048 x 2064");
  EXPECT_THAT(Refusal(tile(0xFFFFFFF0, 0xFFFFFFF0)), HasSubstr("in tiles of"));
  EXPECT_THAT(Refusal(tile(0, 16)), HasSubstr("broken"));
}

struct Case {
  const char* name;
  TiffOptions options;
};
class TiffKindTest : public testing::TestWithParam<Case> {};

// In all of them 8 bits are kept as they are.
TEST_P(TiffKindTest, KeepsItsPixels) {
  const TiffOptions& options = GetParam().options;
  const Image image = DrawImage(61, 47);
  const auto bytes = EncodeTiff({image}, options);
  const Image decoded = Decode(bytes).value();
  Image expected = image;
  for (size_t i = 0; i < image.pixels.size(); i += kChannels) {
    const uint8_t g = image.pixels[i + 1];
    const bool grey = options.colour == Colour::kGrey;
    if (!grey && options.colour != Colour::kPalette) break;
    expected.pixels[i] = grey ? g : 255 - g;
    expected.pixels[i + 2] = grey ? g : g / 2;
  }
  EXPECT_EQ(Compare(expected, decoded).max, 0);
  const Region region{2, 3, 2, 20, 15};  // of the image at half size
  Image half, part;
  ASSERT_TRUE(
      DecodeRegion(bytes, InspectImage(bytes, {}).value(), WholeRegion(61, 47, 2), &half).ok());
  ASSERT_TRUE(DecodeRegion(bytes, InspectImage(bytes, {}).value(), region, &part).ok());
  for (int32_t y = 0; y < region.height; ++y) {
    ASSERT_EQ(std::memcmp(part.Row(y), half.Row(region.y + y) + region.x * kChannels,
                          static_cast<size_t>(region.width) * kChannels),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TiffKindTest,
    testing::Values(
        Case{"Plain", {.compression = 1}}, Case{"Lzw", {}}, Case{"Deflate", {.compression = 8}},
        Case{"OldDeflate", {.compression = 32946}}, Case{"PackBits", {.compression = 32773}},
        Case{"BigEndian", {.big_endian = true}}, Case{"SixteenBits", {.bits = 16}},
        Case{"SixteenBitsBigEndian", {.bits = 16, .big_endian = true}}, Case{"Tiles", {.tile = 16}},
        Case{"Apart", {.apart = true}}, Case{"TilesApart", {.bits = 16, .tile = 32, .apart = true}},
        Case{"Grey", {.colour = Colour::kGrey}},
        Case{"Grey16", {.colour = Colour::kGrey, .bits = 16}},
        Case{"Palette", {.colour = Colour::kPalette}}, Case{"Cmyk", {.colour = Colour::kCmyk}},
        Case{"CmykApart", {.colour = Colour::kCmyk, .apart = true}},
        Case{"Opaque", {.colour = Colour::kAlpha}},
        Case{"Opaque16", {.colour = Colour::kAlpha, .bits = 16}},
        // The tag is told apart from the pixels, which stay as they are stored.
        Case{"Turned", {.orientation = 6}}, Case{"UpsideDown", {.orientation = 4}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TiffTest, OneBitAPixel) {
  const Entries one_bit = {{256, {kShort, {8}}},
                           {258, {kShort, {1}}},
                           {277, {kShort, {1}}},
                           {262, {kShort, {1}}},
                           {279, {kLong, {3}}}};
  Entries inverted = one_bit;
  inverted[262] = {kShort, {0}};
  const Image black_is_zero = Decode(With(one_bit, 3)).value();  // bytes 0x40: the second pixel
  const Image white_is_zero = Decode(With(inverted, 3)).value();
  ASSERT_EQ(black_is_zero.pixels.size(), 72U);
  for (int i = 0; i < 72; ++i) {
    EXPECT_EQ(black_is_zero.pixels[i], i / kChannels % 8 == 1 ? 255 : 0);
    EXPECT_EQ(white_is_zero.pixels[i], 255 - black_is_zero.pixels[i]);
  }
}

TEST(TiffTest, TransparencyIsBlendedWithWhite) {
  // Red, green, blue, alpha of three pixels.
  const uint8_t unassociated[] = {30, 20, 10, 255, 30, 20, 10, 0, 0, 0, 200, 128};
  const uint8_t associated[] = {30, 20, 10, 255, 0, 0, 0, 0, 0, 0, 100, 128};
  for (const uint32_t meaning : {1, 2}) {
    auto bytes = With({{256, {kShort, {3}}},
                       {257, {kShort, {1}}},
                       {258, {kShort, {8, 8, 8, 8}}},
                       {277, {kShort, {4}}},
                       {279, {kLong, {12}}},
                       {338, {kShort, {meaning}}}},
                      12);
    std::memcpy(bytes.data() + kPixelsAt, meaning == 1 ? associated : unassociated, 12);
    EXPECT_EQ(Decode(bytes).value().pixels,
              (std::vector<uint8_t>{30, 20, 10, 255, 255, 255, 127, 127, 227}))
        << meaning;
  }
}

TEST(TiffTest, BlackInkDarkens) {
  auto bytes = With({{256, {kShort, {1}}},
                     {257, {kShort, {1}}},
                     {258, {kShort, {8, 8, 8, 8}}},
                     {262, {kShort, {5}}},
                     {277, {kShort, {4}}},
                     {279, {kLong, {4}}}},
                    4);
  const uint8_t ink[] = {255, 0, 51, 155};  // a key of 155 leaves 100 of 255
  std::memcpy(bytes.data() + kPixelsAt, ink, 4);
  EXPECT_EQ(Decode(bytes).value().pixels, (std::vector<uint8_t>{0, 100, 80}));
}

TEST(TiffTest, TheFirstOfSeveralPagesIsTheImage) {
  const Image first = DrawImage(20, 30, 1), second = DrawImage(40, 10, 2);
  EXPECT_EQ(Compare(Decode(EncodeTiff({first, second})).value(), first).max, 0);
}

TEST(TiffTest, TheOrientationIsThatOfItsTag) {
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = EncodeTiff({DrawImage(20, 30)}, {.orientation = orientation});
    EXPECT_EQ(InspectImage(bytes, {})->orientation, OrientationOfExif(orientation)) << orientation;
  }
}

// Three strips of a row each, and the file ends within the last.
TEST(TiffTest, TooFewPixelsAreAnError) {
  const auto strips = [](uint32_t last) {
    return With({{273, {kLong, {kPixelsAt, kPixelsAt + 15, kPixelsAt + 30}}},
                 {278, {kShort, {1}}},
                 {279, {kLong, {15, 15, last}}}},
                30 + last);
  };
  EXPECT_TRUE(Decode(strips(15)).ok());
  EXPECT_EQ(Decode(strips(14)).status().message(), "cannot be decoded: it is truncated or corrupt");
}

// Neither a crash nor a word, whatever is in the file.
TEST(TiffTest, ScrambledFilesAreHarmless) {
  testing::internal::CaptureStderr();
  Rng rng(RngKey(5).With(kTestStream));
  int decoded = 0;
  for (const int compression : {1, 5, 8, 32773}) {
    const auto bytes = EncodeTiff({DrawImage(61, 47)}, {.compression = compression, .tile = 32});
    for (int i = 0; i < 400; ++i) {
      std::vector<std::byte> scrambled = bytes;
      for (int k = 0; k < 6; ++k) {
        // The directory, at the end, as often as the pixels.
        const size_t last = std::min<size_t>(bytes.size(), rng.Below(2) == 0 ? 400 : bytes.size());
        scrambled[bytes.size() - 1 - rng.Below(last)] = static_cast<std::byte>(rng.Below(256));
      }
      decoded += Decode(scrambled).ok() ? 1 : 0;
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(decoded, 100);
  EXPECT_LT(decoded, 1500);
}

}  // namespace
}  // namespace ringtail
