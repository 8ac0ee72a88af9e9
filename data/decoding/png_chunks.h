// A PNG file is a list of chunks: length, name, content, checksum. libpng inflates every text and
// colour profile: 6.4 MB of zTXt chunks cost 6.5 GB and 40 s, though no pixel depends on them. So
// the decoder gets only the chunks that determine pixels: the critical ones (IHDR, PLTE, IDAT,
// IEND; their names start with a capital letter) and tRNS. No other chunk changes OpenCV's result:
// it applies no gamma, no profile and, with our flags, no EXIF orientation.
//
// Thread-safety: functions without state. Cost: reads a few bytes of each chunk.
// Source: W3C, Portable Network Graphics (PNG) Specification, second edition, sections 5 and 11.
#ifndef RINGTAIL_DATA_DECODING_PNG_CHUNKS_H_
#define RINGTAIL_DATA_DECODING_PNG_CHUNKS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace ringtail {

inline constexpr std::string_view kPngMagic("\x89PNG\r\n\x1A\n", 8);

// Whether every chunk is whole up to the last one, IEND.
bool HasPngEnd(std::span<const std::byte> png);

// `png` (HasPngEnd is true) without the chunks that no pixel depends on and without data after
// IEND. Returns `png` itself, without a copy, if there is nothing to leave out; else a view of
// `kept`.
std::span<const std::byte> PixelChunks(std::span<const std::byte> png,
                                       std::vector<std::byte>* kept);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_PNG_CHUNKS_H_
