#include "data/image_source.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "core/logging.h"
#include "core/machine/memory_limit.h"
#include "core/random.h"
#include "core/trace.h"
#include "data/augment.h"
#include "data/augmentation/augmentation_ramp.h"
#include "data/decoding/decode.h"

namespace ringtail {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

// An evaluation uses every image once, so only training loaders benefit from the cache.
int64_t CacheBytes(const DataConfig& config, const LoaderOptions& options) {
  if (options.mode != LoaderMode::kTrain) return 0;
  const int64_t wanted = config.cache_mib() * kMebi, most = AvailableMemoryBytes() / 2;
  if (wanted <= most) return wanted;
  LogInfo(
      fmt::format("decoded images may take {} MiB, not data.cache_mib = {}: that is half of "
                  "the memory that is available; the others are decoded each time",
                  most / kMebi, config.cache_mib()));
  return most;
}

ImageView Cut(const Image& whole, const Region& region) {
  return {whole, region.x, region.y, region.width, region.height};
}

}  // namespace

ImageSource::ImageSource(const Dataset* dataset, const DataConfig& config,
                         const LoaderOptions& options)
    : dataset_(dataset),
      config_(config),
      options_(options),
      normalization_(NormalizationFromConfig(config)),
      cache_(CacheBytes(config, options)) {}

Augmentation ImageSource::AugmentationOf(int64_t sample, int64_t epoch,
                                         const ImageHeader& header) const {
  const int32_t width = header.upright_width(), height = header.upright_height();
  if (options_.mode != LoaderMode::kTrain) {
    return CentreCrop(config_.evaluation(), options_.mode == LoaderMode::kEvaluateFlipped, width,
                      height);
  }
  const RngKey key = RngKey(options_.seed)
                         .With(kAugmentStream)
                         .With(static_cast<uint64_t>(epoch))
                         .With(dataset_->samples()[sample].key);
  const auto size = static_cast<int32_t>(options_.image_size);
  const float strength = AugmentationStrength(config_.augment(), epoch);
  if (strength == 1) return DrawAugmentation(config_.augment(), key, width, height, size);
  return DrawAugmentation(AugmentationOfStrength(config_.augment(), strength), key, width, height,
                          size);
}

void ImageSource::Render(const ImageView& pixels, const ImageHeader& header,
                         const Augmentation& augmentation, Buffers* buffers, float* dst) const {
  const ScopedSpan span("render", "loader");
  RenderImage(pixels, header.orientation, augmentation, normalization_,
              static_cast<int32_t>(options_.image_size), &buffers->render, dst);
}

Status ImageSource::Load(int64_t sample, int64_t epoch, Buffers* buffers, float* dst) {
  if (const std::optional<ImageHeader> header = cache_.FindHeader(sample)) {
    const Augmentation augmentation = AugmentationOf(sample, epoch, *header);
    const Region region =
        RegionOfCrop(augmentation.crop, *header, static_cast<int32_t>(options_.image_size));
    if (const Image* whole = cache_.Find(sample, region.denominator)) {
      Render(Cut(*whole, region), *header, augmentation, buffers, dst);
      return OkStatus();
    }
  }
  return ReadAndDecode(sample, epoch, buffers, dst);
}

StatusOr<std::vector<std::byte>> ImageSource::Read(int64_t sample) const {
  const ScopedSpan span("read", "loader");
  return dataset_->Read(sample);
}

Status ImageSource::ReadAndDecode(int64_t sample, int64_t epoch, Buffers* buffers, float* dst) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, Read(sample));
  // The header of these bytes and not of the cache: the file may have been replaced since.
  RT_ASSIGN_OR_RETURN(const ImageHeader header, InspectImage(bytes, config_.bad_images()));
  const Augmentation augmentation = AugmentationOf(sample, epoch, header);
  const Region region =
      RegionOfCrop(augmentation.crop, header, static_cast<int32_t>(options_.image_size));
  RT_ASSIGN_OR_RETURN(const ImageView pixels,
                      DecodeOrCache(sample, bytes, header, region, &buffers->decoded));
  Render(pixels, header, augmentation, buffers, dst);
  return OkStatus();
}

StatusOr<ImageView> ImageSource::DecodeOrCache(int64_t sample, const std::vector<std::byte>& bytes,
                                               const ImageHeader& header, const Region& region,
                                               Image* decoded) {
  const ScopedSpan span("decode", "loader");
  const Region whole = WholeRegion(header.width, header.height, region.denominator);
  const int64_t whole_bytes = int64_t{whole.width} * whole.height * kChannels;
  if (!cache_.Reserve(whole_bytes)) {
    RT_RETURN_IF_ERROR(DecodeRegion(bytes, header, region, decoded));
    return ImageView(*decoded);
  }
  Image image;
  if (!DecodeRegion(bytes, header, whole, &image).ok()) {
    // As without a cache: the part that the crop needs may be intact.
    cache_.Release(whole_bytes);
    RT_RETURN_IF_ERROR(DecodeRegion(bytes, header, region, decoded));
    return ImageView(*decoded);
  }
  const Image* kept = cache_.Insert(sample, header, region.denominator, &image);
  if (kept != nullptr) return Cut(*kept, region);
  *decoded = std::move(image);
  return Cut(*decoded, region);
}

}  // namespace ringtail
