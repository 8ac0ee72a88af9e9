// Images for tests, generated: drawn pixels, and JPEG files of every common kind.
#ifndef RINGTAIL_TESTS_DATA_TEST_IMAGES_H_
#define RINGTAIL_TESTS_DATA_TEST_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/decoding/image.h"

namespace ringtail {

// Smooth colours with a few hard edges and a little texture; each `seed` gives another image.
Image DrawImage(int32_t width, int32_t height, uint64_t seed = 1);

struct JpegOptions {
  enum class Colour { kYcc, kGrey, kCmyk, kAdobeInvertedCmyk, kYcck };
  Colour colour = Colour::kYcc;
  int quality = 90;
  int horizontal_sampling = 2, vertical_sampling = 2;  // of luma, relative to chroma
  bool progressive = false;
  int restart_rows = 0;     // rows of blocks between restart markers; 0: none
  int32_t orientation = 0;  // EXIF; 0: no EXIF block
};
std::vector<std::byte> EncodeJpeg(const Image& image, const JpegOptions& options = {});

// An APP1 segment's content with this EXIF `orientation`.
std::vector<std::byte> ExifBlock(int32_t orientation, bool big_endian);

std::vector<std::byte> Bytes(std::string_view text);
// Overwrites width and height in a JPEG's frame header.
void PatchJpegSize(int32_t width, int32_t height, std::vector<std::byte>* jpeg);

// Largest and mean absolute difference of two images of one size.
struct Difference {
  int max = 0;
  double mean = 0;
};
Difference Compare(const Image& a, const Image& b);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DATA_TEST_IMAGES_H_
