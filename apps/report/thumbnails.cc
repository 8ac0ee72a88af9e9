#include "apps/report/thumbnails.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "data/loader.h"
#include "data/render.h"

namespace ringtail {
namespace {

constexpr int kJpegQuality = 80;

// From normalised planes R G B to a JPEG file.
std::string Jpeg(const float* planes, const Normalization& normalization) {
  constexpr auto kSide = static_cast<int>(kThumbnailSize);
  cv::Mat pixels(kSide, kSide, CV_8UC3);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      for (int c = 0; c < kChannels; ++c) {
        const float value = planes[(c * kSide + y) * kSide + x];
        const float pixel = (value - normalization.offset[c]) / normalization.scale[c];
        pixels.ptr<uint8_t>(y)[x * kChannels + (kChannels - 1 - c)] =  // OpenCV's order is B G R
            static_cast<uint8_t>(std::lround(std::clamp(pixel, 0.0F, 255.0F)));
      }
    }
  }
  std::vector<uint8_t> bytes;
  cv::imencode(".jpg", pixels, bytes, {cv::IMWRITE_JPEG_QUALITY, kJpegQuality});
  return {bytes.begin(), bytes.end()};
}

// Up to `count` images of the first batches of `loader`.
StatusOr<std::vector<Thumbnail>> Take(DataLoader* loader, int64_t count, const DataConfig& config) {
  const Normalization normalization = NormalizationFromConfig(config);
  std::vector<Thumbnail> thumbnails;
  while (std::ssize(thumbnails) < count) {
    RT_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
    if (batch.labels.empty()) break;
    for (size_t row = 0; row < batch.samples.size(); ++row) {
      if (batch.samples[row] < 0) continue;
      const std::vector<BadImage> bad = loader->bad_images();
      const bool readable = std::none_of(bad.begin(), bad.end(), [&](const BadImage& image) {
        return image.sample == batch.samples[row];
      });
      const float* const planes = batch.images + row * kChannels * kThumbnailSize * kThumbnailSize;
      thumbnails.push_back({.sample = batch.samples[row],
                            .jpeg = readable ? Jpeg(planes, normalization) : std::string()});
    }
  }
  return thumbnails;
}

StatusOr<std::vector<Thumbnail>> Load(const Dataset& dataset, const std::vector<int64_t>& indices,
                                      DataConfig config, const LoaderOptions& options,
                                      int64_t count) {
  config.set_cache_mib(0);
  config.mutable_bad_images()->set_policy(BadImagesConfig::SKIP);
  config.mutable_bad_images()->set_max_fraction(1);
  RT_ASSIGN_OR_RETURN(const auto loader, DataLoader::Create(&dataset, indices, config, options));
  return Take(loader.get(), count, config);
}

}  // namespace

StatusOr<std::vector<Thumbnail>> ImageThumbnails(const Dataset& dataset,
                                                 const std::vector<int64_t>& indices,
                                                 const DataConfig& config) {
  if (indices.empty()) return std::vector<Thumbnail>();
  LoaderOptions options;
  options.mode = LoaderMode::kEvaluate;
  options.batch = std::ssize(indices);
  options.image_size = kThumbnailSize;
  return Load(dataset, indices, config, options, std::ssize(indices));
}

StatusOr<std::vector<Thumbnail>> TrainingThumbnails(const Dataset& dataset,
                                                    const std::vector<int64_t>& indices,
                                                    int64_t count, uint64_t seed,
                                                    const DataConfig& config) {
  count = std::min<int64_t>(count, std::ssize(indices));
  if (count == 0) return std::vector<Thumbnail>();
  LoaderOptions options;
  options.mode = LoaderMode::kTrain;
  options.batch = count;
  options.image_size = kThumbnailSize;
  options.seed = seed;
  return Load(dataset, indices, config, options, count);
}

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace ringtail
