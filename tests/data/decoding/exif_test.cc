#include "data/decoding/exif.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "tests/data/test_images.h"

namespace ringtail {
namespace {

TEST(ExifTest, EachValueIsAnotherOrientation) {
  std::set<std::tuple<bool, bool, bool>> seen;
  for (int32_t exif = 1; exif <= 8; ++exif) {
    const Orientation orientation = OrientationOfExif(exif);
    EXPECT_EQ(orientation.transposed, exif >= 5) << exif;
    seen.emplace(orientation.transposed, orientation.flip_x, orientation.flip_y);
  }
  EXPECT_EQ(seen.size(), 8U);
}

TEST(ExifTest, BothByteOrders) {
  EXPECT_EQ(ReadExifOrientation(ExifBlock(6, /*big_endian=*/true)), OrientationOfExif(6));
  EXPECT_EQ(ReadExifOrientation(ExifBlock(8, /*big_endian=*/false)), OrientationOfExif(8));
}

TEST(ExifTest, InvalidBlocksMeanUpright) {
  const Orientation upright;
  EXPECT_EQ(ReadExifOrientation({}), upright);
  EXPECT_EQ(ReadExifOrientation(ExifBlock(0, true)), upright);
  EXPECT_EQ(ReadExifOrientation(ExifBlock(9, false)), upright);
  std::vector<std::byte> far = ExifBlock(6, true);
  for (int i = 10; i < 14; ++i) far[i] = std::byte{0xFF};  // the directory's offset
  EXPECT_EQ(ReadExifOrientation(far), upright);
  const std::vector<std::byte> block = ExifBlock(6, true);
  int count = 0;
  for (size_t size = 0; size < block.size(); ++size) {
    count += ReadExifOrientation(std::span(block).first(size)) == upright;
  }
  EXPECT_GT(count, 30);  // every truncation before the value itself
}

}  // namespace
}  // namespace ringtail
