#include "tests/data/test_images.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>  // NOLINT: must follow <cstdio>

#include "core/check.h"
#include "core/random.h"
#include "data/decoding/byte_reader.h"

namespace ringtail {
namespace {

using Colour = JpegOptions::Colour;

// One pixel of the image in the encoder's input format.
void ConvertPixel(const uint8_t* rgb, Colour colour, uint8_t* out) {
  const uint8_t key = std::max({rgb[0], rgb[1], rgb[2]});
  switch (colour) {
    case Colour::kYcc:
      std::memcpy(out, rgb, kChannels);
      return;
    case Colour::kGrey:
      out[0] = rgb[1];
      return;
    case Colour::kCmyk:
      for (int c = 0; c < kChannels; ++c) {
        out[c] = key == 0 ? 0 : static_cast<uint8_t>(255 - rgb[c] * 255 / key);
      }
      out[3] = static_cast<uint8_t>(255 - key);
      return;
    case Colour::kAdobeInvertedCmyk:
    case Colour::kYcck:
      for (int c = 0; c < kChannels; ++c) {
        out[c] = key == 0 ? 255 : static_cast<uint8_t>(rgb[c] * 255 / key);
      }
      out[3] = key;
      return;
  }
}

void SetColours(const JpegOptions& options, jpeg_compress_struct* jpeg) {
  const bool ink = options.colour != Colour::kYcc && options.colour != Colour::kGrey;
  jpeg->input_components = ink ? 4 : options.colour == Colour::kGrey ? 1 : 3;
  jpeg->in_color_space = ink ? JCS_CMYK : options.colour == Colour::kGrey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(jpeg);
  if (options.colour == Colour::kYcck) jpeg_set_colorspace(jpeg, JCS_YCCK);
  jpeg->write_Adobe_marker =
      options.colour == Colour::kAdobeInvertedCmyk || options.colour == Colour::kYcck;
  if (options.colour == Colour::kYcc || options.colour == Colour::kYcck) {
    jpeg->comp_info[0].h_samp_factor = options.horizontal_sampling;
    jpeg->comp_info[0].v_samp_factor = options.vertical_sampling;
    if (options.colour == Colour::kYcck) {
      jpeg->comp_info[3].h_samp_factor = options.horizontal_sampling;
      jpeg->comp_info[3].v_samp_factor = options.vertical_sampling;
    }
  }
}

}  // namespace

Image DrawImage(int32_t width, int32_t height, uint64_t seed) {
  Rng rng(RngKey(seed).With(kTestStream));
  float phase[kChannels];
  for (float& p : phase) p = rng.Uniform(0, 6);
  const auto edge = static_cast<int32_t>(rng.Below(width)) / 2 + width / 4;
  Image image;
  image.Reset(width, height);
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      for (int c = 0; c < kChannels; ++c) {
        const double wave = std::sin(phase[c] + 5.0 * x / width + (2.0 + c) * y / height);
        double value = 128 + 90 * wave + (rng.Uniform() - 0.5) * 8;
        if (x > edge && y > height / 3) value = 255 - value * 0.7;
        image.Row(y)[x * kChannels + c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return image;
}

std::vector<std::byte> EncodeJpeg(const Image& image, const JpegOptions& options) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = image.width;
  jpeg.image_height = image.height;
  SetColours(options, &jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg.restart_in_rows = options.restart_rows;
  jpeg_start_compress(&jpeg, TRUE);
  if (options.orientation != 0) {
    const std::vector<std::byte> exif = ExifBlock(options.orientation, /*big_endian=*/true);
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      exif.size());
  }
  std::vector<uint8_t> row(static_cast<size_t>(image.width) * jpeg.input_components);
  for (int32_t y = 0; y < image.height; ++y) {
    for (int32_t x = 0; x < image.width; ++x) {
      ConvertPixel(image.Row(y) + x * kChannels, options.colour,
                   row.data() + x * jpeg.input_components);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> bytes(first, first + size);
  std::free(memory);
  return bytes;
}

std::vector<std::byte> ExifBlock(int32_t orientation, bool big_endian) {
  std::vector<std::byte> block = Bytes(std::string_view("Exif\0\0", 6));
  const auto append = [&](uint32_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (big_endian ? size - 1 - i : i);
      block.push_back(static_cast<std::byte>(value >> shift & 0xFF));
    }
  };
  append(big_endian ? 0x4D4D : 0x4949, 2);
  append(42, 2);
  append(8, 4);  // the directory follows directly
  append(2, 2);  // two entries: an irrelevant tag, and the orientation
  append(0x0100, 2), append(4, 2), append(1, 4), append(640, 4);
  append(0x0112, 2), append(3, 2), append(1, 4), append(orientation, 2), append(0, 2);
  append(0, 4);  // no further directory
  return block;
}

std::vector<std::byte> Bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void PatchJpegSize(int32_t width, int32_t height, std::vector<std::byte>* jpeg) {
  for (size_t i = 2; i + 9 < jpeg->size(); ++i) {
    const auto marker = static_cast<uint32_t>((*jpeg)[i + 1]);
    if ((*jpeg)[i] != std::byte{0xFF} || marker < 0xC0 || marker > 0xC2) continue;
    const int32_t sides[] = {height, width};
    for (int k = 0; k < 2; ++k) {
      (*jpeg)[i + 5 + 2 * k] = static_cast<std::byte>(sides[k] >> 8 & 0xFF);
      (*jpeg)[i + 6 + 2 * k] = static_cast<std::byte>(sides[k] & 0xFF);
    }
    return;
  }
  RT_CHECK(false, "this JPEG has no frame header");
}

Difference Compare(const Image& a, const Image& b) {
  RT_CHECK(a.width == b.width && a.height == b.height,
           "images of different sizes cannot be compared");
  Difference difference;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    const int d = std::abs(int{a.pixels[i]} - int{b.pixels[i]});
    difference.max = std::max(difference.max, d);
    difference.mean += d;
  }
  difference.mean /= static_cast<double>(a.pixels.size());
  return difference;
}

}  // namespace ringtail
