#include "data/decoding/image_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/decoding/byte_reader.h"

namespace ringtail {
namespace {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals only

struct Format {
  std::optional<ImageFormat> read;  // nullopt: recognised only to be refused by name
  std::string_view name;
  std::string_view extensions;  // lower case, between blanks; empty if files of the format are no
                                // images, or another row has them
  size_t offset = 0;
  std::string_view magic;  // empty: not recognised by its bytes
};

constexpr Format kFormats[] = {
    {ImageFormat::kJpeg, "a JPEG image", " jpg jpeg jfif jpe ", 0, "\xFF\xD8\xFF"sv},
    {ImageFormat::kPng, "a PNG image", " png ", 0, "\x89PNG\r\n\x1A\n"sv},
    {ImageFormat::kBmp, "a BMP image", " bmp ", 0, "BM"sv},
    {ImageFormat::kWebp, "a WebP image", " webp ", 8, "WEBP"sv},
    {ImageFormat::kTiff, "a TIFF image", " tif tiff ", 0, "II*\0"sv},
    {ImageFormat::kTiff, "a TIFF image", "", 0, "MM\0*"sv},
    {{}, "a GIF image", " gif ", 0, "GIF8"sv},
    {{}, "a BigTIFF image", "", 0, "II+\0"sv},
    {{}, "an OpenEXR image", " exr ", 0, "\x76\x2F\x31\x01"sv},
    {{}, "a HEIC, AVIF or MP4 file", " heic heif hif avif ", 4, "ftyp"sv},
    {{}, "a JPEG 2000 image", " jp2 j2k jpf jpx ", 0, "\0\0\0\x0CjP  "sv},
    {{}, "a JPEG 2000 image", "", 0, "\xFF\x4F\xFF\x51"sv},
    {{}, "a JPEG XL image", " jxl ", 0, "\0\0\0\x0CJXL "sv},
    {{}, "a JPEG XL image", "", 0, "\xFF\x0A"sv},
    {{}, "a Photoshop document", " psd ", 0, "8BPS"sv},
    {{}, "a Windows icon", " ico ", 0, "\0\0\1\0"sv},
    {{}, "a Radiance HDR image", " hdr ", 0, "#?RADIANCE"sv},
    {{}, "an SVG drawing", " svg ", 0, ""sv},
    {{}, "a Netpbm image", " ppm pgm pbm pnm ", 0, ""sv},
    {{}, "a camera's raw data", " dng cr2 cr3 nef arw orf rw2 raf ", 0, ""sv},
    {{}, "a PDF document", "", 0, "%PDF"sv},
    {{}, "a Windows compound file (such as Thumbs.db)", "", 0, "\xD0\xCF\x11\xE0"sv},
};

const Format* FindByBytes(std::span<const std::byte> bytes) {
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& format) {
        return !format.magic.empty() && HasTextAt(bytes, format.offset, format.magic);
      });
  return found == std::end(kFormats) ? nullptr : found;
}

// In lower case, without the dot; empty for ".jpg", a hidden file without an extension.
std::string Extension(std::string_view file_name) {
  const size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "";
  std::string extension(file_name.substr(dot + 1));
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

const Format* FindByExtension(const std::string& extension) {
  if (extension.empty() || extension.find(' ') != std::string::npos) return nullptr;
  const std::string between_blanks = " " + extension + " ";
  for (const Format& format : kFormats) {
    if (format.extensions.find(between_blanks) != std::string_view::npos) return &format;
  }
  return nullptr;
}

// "a, b or c"
std::string Alternatives(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " or " : ", ", all[i]);
  }
  return text;
}

}  // namespace

std::optional<ImageFormat> FormatOf(std::span<const std::byte> bytes) {
  const Format* format = FindByBytes(bytes);
  return format != nullptr ? format->read : std::nullopt;
}

std::string_view RefusedFormat(std::span<const std::byte> bytes) {
  const Format* format = FindByBytes(bytes);
  return format != nullptr && !format->read ? format->name : "";
}

bool HasImageExtension(std::string_view file_name) {
  const Format* format = FindByExtension(Extension(file_name));
  return format != nullptr && format->read.has_value();
}

std::string RefusedExtension(std::string_view file_name) {
  const std::string extension = Extension(file_name);
  const Format* format = FindByExtension(extension);
  return format != nullptr && !format->read ? "." + extension : "";
}

std::string ReadExtensions() {
  std::vector<std::string> all;
  for (const Format& format : kFormats) {
    std::string_view rest = format.read ? format.extensions : "";
    while (rest.size() > 1) {
      rest.remove_prefix(1);  // the blank in front
      const size_t length = rest.find(' ');
      all.push_back("." + std::string(rest.substr(0, length)));
      rest.remove_prefix(length);
    }
  }
  return Alternatives(all);
}

std::string ReadFormats() {
  constexpr std::string_view kBefore = "a ", kBehind = " image";
  std::vector<std::string> all;
  for (const Format& format : kFormats) {
    if (!format.read || format.extensions.empty()) continue;
    const std::string_view name = format.name.substr(kBefore.size());
    all.emplace_back(name.substr(0, name.size() - kBehind.size()));
  }
  return Alternatives(all);
}

}  // namespace ringtail
