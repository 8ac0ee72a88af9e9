#include "data/decoding/decode.h"

#include <algorithm>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "data/decoding/jpeg_decode.h"
#include "data/decoding/opencv_settings.h"
#include "data/decoding/png_chunks.h"
#include "data/decoding/shrink_pixels.h"
#include "data/decoding/tiff_decode.h"

namespace ringtail {
namespace {

constexpr uint32_t kWhite = 255;
constexpr double k16To8Bits = 1.0 / 257;  // 65535 -> 255

void BlendOverWhite(const cv::Mat& bgra, cv::Mat* rgb) {
  rgb->create(bgra.size(), CV_8UC3);
  for (int y = 0; y < bgra.rows; ++y) {
    const uint8_t* src = bgra.ptr(y);
    uint8_t* dst = rgb->ptr(y);
    for (int x = 0; x < bgra.cols; ++x, src += 4, dst += kChannels) {
      const uint32_t alpha = src[3], rest = kWhite * (255 - alpha);
      for (int c = 0; c < kChannels; ++c) {
        dst[c] = static_cast<uint8_t>((src[2 - c] * alpha + rest + 127) / 255);
      }
    }
  }
}

// PNG, BMP and WebP. Empty if OpenCV cannot read it.
cv::Mat DecodeWithOpenCv(std::span<const std::byte> bytes, ImageFormat format) {
  std::vector<std::byte> kept;
  if (format == ImageFormat::kPng) bytes = PixelChunks(bytes, &kept);
  const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8U,
                        const_cast<std::byte*>(bytes.data()));
  // The fourth channel of a 32-bit BMP is padding, usually zero, and no transparency.
  const int mode = format == ImageFormat::kBmp ? cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION
                                               : cv::IMREAD_UNCHANGED;
  cv::Mat image = cv::imdecode(encoded, mode);
  if (image.empty()) return image;
  if (image.depth() == CV_16U) image.convertTo(image, CV_8U, k16To8Bits);
  cv::Mat rgb;
  switch (image.channels()) {
    case 1:
      cv::cvtColor(image, rgb, cv::COLOR_GRAY2RGB);
      break;
    case 3:
      cv::cvtColor(image, rgb, cv::COLOR_BGR2RGB);
      break;
    case 4:
      BlendOverWhite(image, &rgb);
      break;
    default:
      return {};
  }
  return rgb;
}

// dst (region.width x region.height): averages of denominator x denominator blocks of `src`, whose
// pixel (0, 0) is the first of the block (region.x, region.y) if `src` starts at the region.
void ShrinkBlocks(const cv::Mat& src, const cv::Rect& rectangle, const Region& region, Image* dst) {
  dst->Reset(region.width, region.height);
  cv::Mat shrunk(region.height, region.width, CV_8UC3, dst->pixels.data());
  if (rectangle.size() == shrunk.size()) {
    src(rectangle).copyTo(shrunk);
  } else {
    cv::resize(src(rectangle), shrunk, shrunk.size(), 0, 0, cv::INTER_AREA);
  }
}

// A side shorter than the denominator has one incomplete block.
cv::Rect BlocksOf(const Region& region, int32_t factor, int32_t width, int32_t height) {
  const int32_t x = region.x * factor, y = region.y * factor;
  return {x, y, std::min(region.width * factor, width - x),
          std::min(region.height * factor, height - y)};
}

Status DecodeAnyRegion(std::span<const std::byte> bytes, const ImageHeader& header,
                       const Region& region, Image* dst) {
  if (header.format == ImageFormat::kJpeg) {
    if (region.denominator <= kMaxJpegDenominator)
      return DecodeJpegRegion(bytes, header, region, dst);
    const int32_t factor = region.denominator / kMaxJpegDenominator;
    const Region whole = WholeRegion(header.width, header.height, kMaxJpegDenominator);
    const cv::Rect blocks = BlocksOf(region, factor, whole.width, whole.height);
    Image eighth;
    RT_RETURN_IF_ERROR(DecodeJpegRegion(
        bytes, header, {kMaxJpegDenominator, blocks.x, blocks.y, blocks.width, blocks.height},
        &eighth));
    const cv::Mat src(eighth.height, eighth.width, CV_8UC3, eighth.pixels.data());
    ShrinkBlocks(src, {0, 0, src.cols, src.rows}, region, dst);
    return OkStatus();
  }
  Image tiff;
  cv::Mat image;
  if (header.format == ImageFormat::kTiff) {
    RT_RETURN_IF_ERROR(DecodeTiff(bytes, header, &tiff));
    image = cv::Mat(tiff.height, tiff.width, CV_8UC3, tiff.pixels.data());
  } else {
    image = DecodeWithOpenCv(bytes, header.format);
  }
  if (image.empty()) return DataLoss("cannot be decoded: it is truncated or corrupt");
  if (image.cols != header.width || image.rows != header.height) {
    return DataLoss("cannot be decoded: its pixels do not match its header");
  }
  ShrinkBlocks(image, BlocksOf(region, region.denominator, header.width, header.height), region,
               dst);
  return OkStatus();
}

void CheckRegion(const Region& region, int32_t width, int32_t height) {
  const Region whole = WholeRegion(width, height, region.denominator);
  RT_CHECK(region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1 &&
               region.x <= whole.width - region.width && region.y <= whole.height - region.height,
           "a region lies outside of its image");
}

}  // namespace

Region WholeRegion(int32_t width, int32_t height, int32_t denominator) {
  return {denominator, 0, 0, std::max(width / denominator, 1), std::max(height / denominator, 1)};
}

Status DecodeRegion(std::span<const std::byte> bytes, const ImageHeader& header,
                    const Region& region, Image* dst) {
  CheckRegion(region, header.width, header.height);
  ConfigureOpenCvOnce();
  try {
    return DecodeAnyRegion(bytes, header, region, dst);
  } catch (const cv::Exception& e) {
    return DataLoss("cannot be decoded: " + e.err);
  }
}

Status ShrinkPixels(const ImageView& pixels, const Region& region, Image* dst) {
  CheckRegion(region, pixels.width, pixels.height);
  ConfigureOpenCvOnce();
  try {
    const cv::Mat src(pixels.height, pixels.width, CV_8UC3, const_cast<uint8_t*>(pixels.pixels),
                      pixels.row_bytes);
    ShrinkBlocks(src, BlocksOf(region, region.denominator, pixels.width, pixels.height), region,
                 dst);
    return OkStatus();
  } catch (const cv::Exception& e) {
    return Internal("cannot be shrunk: " + e.err);
  }
}

}  // namespace ringtail
