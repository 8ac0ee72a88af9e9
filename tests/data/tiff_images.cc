#include "tests/data/tiff_images.h"

#include <tiffio.h>

#include <algorithm>
#include <string>

#include "core/check.h"
#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Colour = TiffOptions::Colour;

int Samples(Colour colour) {
  switch (colour) {
    case Colour::kGrey:
    case Colour::kPalette:
      return 1;
    case Colour::kRgb:
      return 3;
    case Colour::kCmyk:
    case Colour::kAlpha:
      return 4;
  }
  return 0;
}

uint16_t Photometric(Colour colour) {
  switch (colour) {
    case Colour::kGrey:
      return PHOTOMETRIC_MINISBLACK;
    case Colour::kPalette:
      return PHOTOMETRIC_PALETTE;
    case Colour::kCmyk:
      return PHOTOMETRIC_SEPARATED;
    case Colour::kRgb:
    case Colour::kAlpha:
      return PHOTOMETRIC_RGB;
  }
  return 0;
}

uint8_t SampleOf(const uint8_t* rgb, Colour colour, int sample) {
  if (colour == Colour::kGrey || colour == Colour::kPalette) return rgb[1];
  if (colour == Colour::kCmyk) return sample < kChannels ? 255 - rgb[sample] : 0;
  return sample < kChannels ? rgb[sample] : 255;
}

// Samples `first` to `last` of a row's pixels from column x on, `width` of them; beyond the image zeros.
std::vector<uint8_t> Row(const Image& image, int32_t x, int32_t y, int32_t width, int first,
                         int last, const TiffOptions& options) {
  std::vector<uint8_t> row;
  for (int32_t i = x; i < x + width; ++i) {
    for (int sample = first; sample < last; ++sample) {
      const bool inside = i < image.width && y < image.height;
      const uint8_t value =
          inside ? SampleOf(image.Row(y) + i * kChannels, options.colour, sample) : 0;
      row.insert(row.end(), options.bits / 8, value);  // 16 bits: value * 257 in any byte order
    }
  }
  return row;
}

void SetTags(TIFF* tiff, const Image& image, const TiffOptions& options) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, image.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, image.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, options.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, Samples(options.colour));
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, Photometric(options.colour));
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, options.compression);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, options.orientation);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               options.apart ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (options.colour == Colour::kAlpha) {
    const uint16_t meaning = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &meaning);
  }
  if (options.colour == Colour::kPalette) {
    std::vector<uint16_t> red(256), green(256), blue(256);
    for (int g = 0; g < 256; ++g) {
      red[g] = static_cast<uint16_t>((255 - g) * 257);
      green[g] = static_cast<uint16_t>(g * 257);
      blue[g] = static_cast<uint16_t>(g / 2 * 257);
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
  }
  if (options.tile > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, options.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, options.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 7);
  }
}

void WritePage(TIFF* tiff, const Image& image, const TiffOptions& options) {
  SetTags(tiff, image, options);
  const int samples = Samples(options.colour), planes = options.apart ? samples : 1;
  for (int plane = 0; plane < planes; ++plane) {
    const int first = options.apart ? plane : 0, last = options.apart ? plane + 1 : samples;
    if (options.tile == 0) {
      for (int32_t y = 0; y < image.height; ++y) {
        std::vector<uint8_t> row = Row(image, 0, y, image.width, first, last, options);
        RT_CHECK(TIFFWriteScanline(tiff, row.data(), y, plane) == 1, "libtiff writes");
      }
      continue;
    }
    for (int32_t top = 0; top < image.height; top += options.tile) {
      for (int32_t left = 0; left < image.width; left += options.tile) {
        std::vector<uint8_t> tile;
        for (int32_t y = top; y < top + options.tile; ++y) {
          const auto row = Row(image, left, y, options.tile, first, last, options);
          tile.insert(tile.end(), row.begin(), row.end());
        }
        RT_CHECK(TIFFWriteTile(tiff, tile.data(), left, top, 0, plane) > 0, "libtiff writes");
      }
    }
  }
  RT_CHECK(TIFFWriteDirectory(tiff) == 1, "libtiff writes");
}

}  // namespace

std::vector<std::byte> EncodeTiff(const std::vector<Image>& pages, const TiffOptions& options) {
  constexpr int64_t kMostBytes = 1 << 24;
  const TempDir folder;
  const std::string path = folder.File("image.tif");
  TIFF* const tiff = TIFFOpen(path.c_str(), options.big_endian ? "wb" : "wl");
  RT_CHECK(tiff != nullptr, "libtiff opens a new file");
  for (const Image& page : pages) WritePage(tiff, page, options);
  TIFFClose(tiff);
  return ReadFileBytes(path, kMostBytes).value();
}

}  // namespace ringtail
