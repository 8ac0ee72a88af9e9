// From encoded bytes to RGB pixels: decodes only the requested region, at the requested scale.
//
// A Region lies in the image as stored (before EXIF's orientation), shrunk by `denominator`: 1, 2,
// 4, 8, ... A JPEG is shrunk by its own transform (down to 1/8: it omits coefficients, a clean
// low-pass that costs less than full size), beyond that and for other formats by averaging blocks
// of pixels. Rows and columns of a JPEG outside the region are not transformed, upsampled or
// converted. The pixels of a region equal, bit for bit, those of the same rectangle of the whole
// image at the same denominator.
//
// Grey becomes R = G = B, CMYK and YCCK are multiplied out, 16 bits are reduced to 8, transparent
// pixels are blended with white (as on a page; colours under full transparency are arbitrary).
// EXIF's orientation is not applied. Of a TIFF with several pages the first is the image.
//
// Precondition: InspectImage accepted these bytes and gave `header`.
// Errors: DataLoss, a predicate without the file's name ("is truncated after 48 of 96 rows"). Data
// that is only scrambled, or followed by junk, is no error: the image is used. Writes nothing to
// stderr.
// Thread-safety: any thread, one `dst` each.
// Memory: one region and a row (progressive JPEG and other formats: the whole image once or twice). A PNG's
// texts and profiles are not decoded (data/decoding/png_chunks.h).
// Time: bounded by the number of pixels, whatever the file claims: the number of scans of a
// progressive JPEG is limited (data/decoding/jpeg_decode.cc).
// Source of the method: libjpeg-turbo, libjpeg.txt, "Partial image decompression".
#ifndef RINGTAIL_DATA_DECODING_DECODE_H_
#define RINGTAIL_DATA_DECODING_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "data/decoding/image.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

struct Region {
  int32_t denominator = 1;                      // a power of two
  int32_t x = 0, y = 0, width = 0, height = 0;  // pixels of the shrunk image

  bool operator==(const Region&) const = default;
};

// The whole of an image of width x height pixels. A shrunk side has floor(side / denominator)
// pixels, at least one: an incomplete last block is left out.
Region WholeRegion(int32_t width, int32_t height, int32_t denominator);

Status DecodeRegion(std::span<const std::byte> bytes, const ImageHeader& header,
                    const Region& region, Image* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_DECODE_H_
