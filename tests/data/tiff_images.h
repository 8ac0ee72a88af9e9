// TIFF files for tests, written by libtiff.
#ifndef RINGTAIL_TESTS_DATA_TIFF_IMAGES_H_
#define RINGTAIL_TESTS_DATA_TIFF_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/decoding/image.h"

namespace ringtail {

struct TiffOptions {
  enum class Colour {
    kRgb,
    kGrey,     // the green channel
    kPalette,  // the green channel, as an index of colours (255 - g, g, g / 2)
    kCmyk,     // without black
    kAlpha,    // opaque, unassociated
  };
  Colour colour = Colour::kRgb;
  int bits = 8;             // a channel; 16 hold the value times 257
  int compression = 5;      // LZW
  int32_t tile = 0;         // side; 0: strips of 7 rows
  bool apart = false;       // channels
  int32_t orientation = 1;  // the tag
  bool big_endian = false;
};
// Several images are pages.
std::vector<std::byte> EncodeTiff(const std::vector<Image>& pages, const TiffOptions& options = {});

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DATA_TIFF_IMAGES_H_
