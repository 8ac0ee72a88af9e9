#include "data/render.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

// ImageNet's statistics, R G B.
constexpr std::array<float, kChannels> kDefaultMean = {123.675F, 116.28F, 103.53F};
constexpr std::array<float, kChannels> kDefaultStd = {58.395F, 57.12F, 57.375F};
constexpr float kGreyR = 0.299F, kGreyG = 0.587F, kGreyB = 0.114F;
constexpr float kMaxPixel = 255;

cv::Mat Borrow(Image* image) {
  return {image->height, image->width, CV_8UC3, image->pixels.data()};
}

// cv::flip's codes.
constexpr int kFlipRows = 0, kFlipColumns = 1, kFlipBoth = -1;

// Makes the square image buffers->resized upright and flips it if `flip`; returns the image that
// holds the result.
Image* Upright(const Orientation& orientation, bool flip, RenderBuffers* buffers) {
  Image *current = &buffers->resized, *other = &buffers->oriented;
  const auto apply = [&](auto&& operation) {
    other->Reset(current->width, current->height);
    cv::Mat dst = Borrow(other);
    operation(Borrow(current), dst);
    std::swap(current, other);
  };
  const auto apply_flip = [&](int code) {
    apply([code](const cv::Mat& src, cv::Mat& dst) { cv::flip(src, dst, code); });
  };
  if (orientation.transposed) {
    apply([](const cv::Mat& src, cv::Mat& dst) { cv::transpose(src, dst); });
  }
  if (orientation.flip_x || orientation.flip_y) {
    apply_flip(!orientation.flip_y ? kFlipColumns : !orientation.flip_x ? kFlipRows : kFlipBoth);
  }
  if (flip) apply_flip(kFlipColumns);
  return current;
}

float Cut(float pixel) { return std::clamp(pixel, 0.0F, kMaxPixel); }

float Grey(float r, float g, float b) { return kGreyR * r + kGreyG * g + kGreyB * b; }

// On three planes of `count` pixels in 0..255, before normalisation.
void JitterColours(const Augmentation& augmentation, int64_t count, float* r, float* g, float* b) {
  double grey_sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    r[i] = Cut(r[i] * augmentation.brightness);
    g[i] = Cut(g[i] * augmentation.brightness);
    b[i] = Cut(b[i] * augmentation.brightness);
    grey_sum += Grey(r[i], g[i], b[i]);
  }
  const float contrast = augmentation.contrast, saturation = augmentation.saturation;
  const float lift = (1 - contrast) * static_cast<float>(grey_sum / static_cast<double>(count));
  for (int64_t i = 0; i < count; ++i) {
    r[i] = Cut(r[i] * contrast + lift);
    g[i] = Cut(g[i] * contrast + lift);
    b[i] = Cut(b[i] * contrast + lift);
    const float grey = (1 - saturation) * Grey(r[i], g[i], b[i]);
    r[i] = Cut(r[i] * saturation + grey);
    g[i] = Cut(g[i] * saturation + grey);
    b[i] = Cut(b[i] * saturation + grey);
  }
}

void Normalize(const Normalization& normalization, int64_t count, float* dst) {
  for (int c = 0; c < kChannels; ++c) {
    float* plane = dst + c * count;
    for (int64_t i = 0; i < count; ++i) {
      plane[i] = plane[i] * normalization.scale[c] + normalization.offset[c];
    }
  }
}

// 0 is the mean colour.
void Erase(const ErasedRectangle& erased, int64_t image_size, float* dst) {
  for (int64_t row = 0; row < kChannels * erased.height; ++row) {
    const int64_t c = row / erased.height, y = erased.y + row % erased.height;
    std::fill_n(dst + (c * image_size + y) * image_size + erased.x, erased.width, 0.0F);
  }
}

bool HasJitter(const Augmentation& augmentation) {
  return augmentation.brightness != 1 || augmentation.contrast != 1 || augmentation.saturation != 1;
}

}  // namespace

Normalization NormalizationFromConfig(const DataConfig& config) {
  Normalization normalization;
  for (int c = 0; c < kChannels; ++c) {
    const float mean = c < config.mean_size() ? config.mean(c) : kDefaultMean[c];
    const float deviation = c < config.std_size() ? config.std(c) : kDefaultStd[c];
    normalization.scale[c] = 1 / deviation;
    normalization.offset[c] = -mean / deviation;
  }
  return normalization;
}

void RenderImage(const ImageView& src, const Orientation& orientation,
                 const Augmentation& augmentation, const Normalization& normalization,
                 int32_t image_size, RenderBuffers* buffers, float* dst) {
  const int64_t count = int64_t{image_size} * image_size;
  const cv::Mat borrowed(src.height, src.width, CV_8UC3, const_cast<uint8_t*>(src.pixels),
                         src.row_bytes);
  buffers->resized.Reset(image_size, image_size);
  cv::Mat resized = Borrow(&buffers->resized);
  cv::resize(borrowed, resized, resized.size(), 0, 0, cv::INTER_LINEAR);
  Image* upright = Upright(orientation, augmentation.flip, buffers);
  Image* const spare = upright == &buffers->resized ? &buffers->oriented : &buffers->resized;
  ChangePixels(augmentation.change, upright, spare);

  buffers->planes.resize(count * kChannels);
  cv::Mat planes[kChannels];
  for (int c = 0; c < kChannels; ++c) {
    planes[c] = cv::Mat(image_size, image_size, CV_8U, buffers->planes.data() + c * count);
  }
  cv::split(Borrow(upright), planes);
  const bool jitter = HasJitter(augmentation);
  for (int c = 0; c < kChannels; ++c) {
    cv::Mat plane(image_size, image_size, CV_32F, dst + c * count);
    const double scale = jitter ? 1 : normalization.scale[c],
                 offset = jitter ? 0 : normalization.offset[c];
    planes[c].convertTo(plane, CV_32F, scale, offset);
  }
  if (jitter) {
    JitterColours(augmentation, count, dst, dst + count, dst + 2 * count);
    Normalize(normalization, count, dst);
  }
  Erase(augmentation.erased, image_size, dst);
}

}  // namespace ringtail
