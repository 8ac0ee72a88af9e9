#include "data/decoding/shrink_image.h"

#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <span>

#include "core/status.h"
#include "data/decoding/decode.h"
#include "data/decoding/image.h"
#include "data/decoding/image_guard.h"

namespace ringtail {
namespace {

// The largest power of two by which the image can be shrunk while it is decoded without falling
// below `short_side`.
int32_t DecodeDenominator(int32_t shorter, int32_t short_side) {
  int32_t denominator = 1;
  while (shorter / (2 * denominator) >= short_side) denominator *= 2;
  return denominator;
}

// `image` (its pixels, too) as EXIF wants it displayed.
cv::Mat Upright(cv::Mat image, const Orientation& orientation) {
  constexpr int kFlipRows = 0, kFlipColumns = 1;  // cv::flip's codes
  if (orientation.transposed) cv::transpose(image, image);
  if (orientation.flip_x) cv::flip(image, image, kFlipColumns);
  if (orientation.flip_y) cv::flip(image, image, kFlipRows);
  return image;
}

cv::Size ShrunkSize(const ImageHeader& header, int32_t short_side) {
  const double scale = static_cast<double>(short_side) / std::min(header.width, header.height);
  const auto shrink = [&](int32_t side) {
    return std::max(short_side, static_cast<int32_t>(std::lround(side * scale)));
  };
  return {shrink(header.width), shrink(header.height)};
}

// `decoded` is RGB; OpenCV's encoder wants BGR.
std::vector<std::byte> ResizeAndEncode(Image* decoded, const ImageHeader& header,
                                       int32_t short_side, int32_t jpeg_quality) {
  const cv::Mat rgb(decoded->height, decoded->width, CV_8UC3, decoded->pixels.data());
  cv::Mat resized, bgr;
  cv::resize(rgb, resized, ShrunkSize(header, short_side), 0, 0, cv::INTER_AREA);
  cv::cvtColor(Upright(resized, header.orientation), bgr, cv::COLOR_RGB2BGR);
  std::vector<uchar> jpeg;
  if (!cv::imencode(".jpg", bgr, jpeg, {cv::IMWRITE_JPEG_QUALITY, jpeg_quality})) return {};
  const auto bytes = std::as_bytes(std::span(jpeg));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::byte> ShrinkImage(std::vector<std::byte> encoded, const BadImagesConfig& limits,
                                   int32_t short_side, int32_t jpeg_quality) {
  const auto header = InspectImage(encoded, limits);
  if (!header.ok()) return encoded;
  const int32_t shorter = std::min(header->width, header->height);
  if (shorter <= short_side) return encoded;
  const Region whole =
      WholeRegion(header->width, header->height, DecodeDenominator(shorter, short_side));
  try {
    Image decoded;
    if (!DecodeRegion(encoded, *header, whole, &decoded).ok()) return encoded;
    std::vector<std::byte> jpeg = ResizeAndEncode(&decoded, *header, short_side, jpeg_quality);
    return jpeg.empty() ? encoded : jpeg;
  } catch (const cv::Exception&) {
    return encoded;
  }
}

}  // namespace ringtail
