// Image formats: their extensions and first bytes. One table serves listing (by extension) and
// decoding (by first bytes, whatever the file's name), so that listed files can be read and left
// out files can be named.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_
#define RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringtail {

enum class ImageFormat { kJpeg, kPng, kBmp, kWebp, kTiff };  // the supported ones

// By the first bytes; nullopt for an unsupported format.
std::optional<ImageFormat> FormatOf(std::span<const std::byte> bytes);
// "a GIF image" for a known but unsupported format; empty for all others.
std::string_view RefusedFormat(std::span<const std::byte> bytes);

// Whether the name has the extension of a supported format, in any case ("x.JPG"). Decoding checks
// the content.
bool HasImageExtension(std::string_view file_name);
// The extension of a known but unsupported format: ".heic" for "x.HEIC"; empty for all others.
std::string RefusedExtension(std::string_view file_name);

// ".jpg, .jpeg, .png or .bmp"
std::string ReadExtensions();
// "JPEG, PNG or BMP"
std::string ReadFormats();

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_FORMAT_H_
