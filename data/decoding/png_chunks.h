// A PNG file as its chunks: length, name, content, checksum. libpng inflates whatever text and
// colour profile it meets: 6.4 MB of zTXt chunks cost it 6.5 GB and 40 s, though no pixel depends
// on them. So the decoder is given only the chunks that pixels are made of: the critical ones
// (IHDR, PLTE, IDAT, IEND; the first letter of their names is a capital) and tRNS. Nothing else
// changes what OpenCV makes of a file: it applies no gamma, no profile and, as it is asked here, no
// EXIF orientation.
//
// Thread-safety: functions without state. Cost: a few bytes are read of each chunk.
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

// `png`, of which HasPngEnd is true, without the chunks that no pixel depends on and without what
// follows IEND. If there is nothing to leave out that is `png` itself, and nothing is copied; else
// it lies in `kept`.
std::span<const std::byte> PixelChunks(std::span<const std::byte> png,
                                       std::vector<std::byte>* kept);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_PNG_CHUNKS_H_
