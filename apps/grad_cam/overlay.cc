#include "apps/grad_cam/overlay.h"

#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr double kImageShare = 0.5;

// OpenCV's order of channels is B G R.
cv::Mat BgrOf(const Image& image) {
  const cv::Mat rgb(image.height, image.width, CV_8UC3, const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  return bgr;
}

}  // namespace

Image ImageFromPlanes(const float* planes, int64_t size, const Normalization& normalization) {
  Image image;
  image.Reset(static_cast<int32_t>(size), static_cast<int32_t>(size));
  const int64_t plane = size * size;
  for (int64_t i = 0; i < plane; ++i) {
    for (int c = 0; c < kChannels; ++c) {
      const float pixel =
          (planes[c * plane + i] - normalization.offset[c]) / normalization.scale[c];
      image.pixels[i * kChannels + c] =
          static_cast<uint8_t>(std::lround(std::clamp(pixel, 0.0F, 255.0F)));
    }
  }
  return image;
}

Image Overlay(const Image& image, const ActivationMap& map) {
  RT_CHECK(!map.empty(), "an overlay needs a map");
  const ActivationMap resized = Resize(map, image.height, image.width);
  cv::Mat levels(image.height, image.width, CV_8UC1);
  for (size_t i = 0; i < resized.values.size(); ++i) {
    levels.data[i] =
        static_cast<uint8_t>(std::lround(255 * std::clamp(resized.values[i], 0.0F, 1.0F)));
  }
  cv::Mat colours;
  cv::applyColorMap(levels, colours, cv::COLORMAP_VIRIDIS);
  cv::Mat mixed;
  cv::addWeighted(BgrOf(image), kImageShare, colours, 1 - kImageShare, 0, mixed);
  Image overlay;
  overlay.Reset(image.width, image.height);
  cv::Mat rgb(image.height, image.width, CV_8UC3, overlay.pixels.data());
  cv::cvtColor(mixed, rgb, cv::COLOR_BGR2RGB);
  return overlay;
}

std::string EncodeJpeg(const Image& image, int quality) {
  std::vector<uint8_t> bytes;
  cv::imencode(".jpg", BgrOf(image), bytes, {cv::IMWRITE_JPEG_QUALITY, quality});
  return {bytes.begin(), bytes.end()};
}

}  // namespace ringtail
