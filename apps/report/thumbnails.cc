#include "apps/report/thumbnails.h"

#include <algorithm>
#include <memory>

#include "apps/grad_cam/grad_cam_net.h"
#include "apps/grad_cam/overlay.h"
#include "core/check.h"
#include "data/loader.h"
#include "data/render.h"

namespace ringtail {
namespace {

constexpr int kJpegQuality = 80;

// Up to `count` images of the first batches of `loader`.
StatusOr<std::vector<Thumbnail>> Take(DataLoader* loader, int64_t count, const DataConfig& config,
                                      std::span<const ActivationMap> maps) {
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
      Thumbnail& thumbnail = thumbnails.emplace_back(Thumbnail{.sample = batch.samples[row]});
      if (!readable) continue;
      const float* const planes = batch.images + row * kChannels * kThumbnailSize * kThumbnailSize;
      const Image image = ImageFromPlanes(planes, kThumbnailSize, normalization);
      thumbnail.jpeg = EncodeJpeg(image, kJpegQuality);
      const size_t i = thumbnails.size() - 1;
      if (i >= maps.size() || maps[i].empty()) continue;
      thumbnail.overlay_jpeg = EncodeJpeg(Overlay(image, maps[i]), kJpegQuality);
    }
  }
  return thumbnails;
}

StatusOr<std::vector<Thumbnail>> Load(const Dataset& dataset, const std::vector<int64_t>& indices,
                                      const DataConfig& config, const LoaderOptions& options,
                                      int64_t count, std::span<const ActivationMap> maps) {
  RT_ASSIGN_OR_RETURN(const auto loader,
                      DataLoader::Create(&dataset, indices, OnceReadable(config), options));
  return Take(loader.get(), count, config, maps);
}

}  // namespace

StatusOr<std::vector<Thumbnail>> ImageThumbnails(const Dataset& dataset,
                                                 const std::vector<int64_t>& indices,
                                                 const DataConfig& config,
                                                 std::span<const ActivationMap> maps) {
  RT_CHECK(maps.empty() || maps.size() == indices.size(), "one map per image");
  if (indices.empty()) return std::vector<Thumbnail>();
  LoaderOptions options;
  options.mode = LoaderMode::kEvaluate;
  options.batch = std::ssize(indices);
  options.image_size = kThumbnailSize;
  return Load(dataset, indices, config, options, std::ssize(indices), maps);
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
  return Load(dataset, indices, config, options, count, {});
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
