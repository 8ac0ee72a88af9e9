// The formats of images: how files of each are called and how they begin. One table for listing (a
// folder's files, by extension) and for decoding (by first bytes, whatever a file is called), so
// that what is listed can be read, and what is left out can be named.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_
#define RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringtail {

enum class ImageFormat { kJpeg, kPng, kBmp };  // those that are read

// By its first bytes; nothing for a format that is not read.
std::optional<ImageFormat> FormatOf(std::span<const std::byte> bytes);
// "a GIF image", of one that is known but not read; empty for all others.
std::string_view RefusedFormat(std::span<const std::byte> bytes);

// Whether a file of this name should hold a format that is read, in any case ("x.JPG"). Whether it
// does, decoding finds out.
bool HasImageExtension(std::string_view file_name);
// The same for images of formats that are not read: ".webp" of "x.WebP", empty for all others.
std::string RefusedExtension(std::string_view file_name);

// ".jpg, .jpeg, .png or .bmp"
std::string ReadExtensions();

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_
