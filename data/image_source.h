// ImageSource: loads one sample into one row of a batch.
//
//   cache? -> Dataset::Read -> InspectImage -> crop -> DecodeRegion -> RenderImage
//
// The content of a row is a pure function of (config, options, sample, epoch): see data/loader.h.
// Thread-safety: any thread, one Buffers each.
// Errors: the reason why the image cannot be used, without its name.
#ifndef RINGTAIL_DATA_IMAGE_SOURCE_H_
#define RINGTAIL_DATA_IMAGE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "data/image_cache.h"
#include "data/loader_options.h"
#include "data/render.h"

namespace ringtail {

class ImageSource {
 public:
  // Working memory of one thread.
  struct Buffers {
    Image decoded;
    RenderBuffers render;
  };

  // `dataset` must outlive the source.
  ImageSource(const Dataset* dataset, const DataConfig& config, const LoaderOptions& options);

  // dst: (3, S, S) f32; undefined after an error.
  Status Load(int64_t sample, int64_t epoch, Buffers* buffers, float* dst);

  CacheStatistics cache_statistics() const { return cache_.statistics(); }

 private:
  Augmentation AugmentationOf(int64_t sample, int64_t epoch, const ImageHeader& header) const;
  StatusOr<std::vector<std::byte>> Read(int64_t sample) const;
  Status ReadAndDecode(int64_t sample, int64_t epoch, Buffers* buffers, float* dst);
  StatusOr<ImageView> DecodeOrCache(int64_t sample, const std::vector<std::byte>& bytes,
                                    const ImageHeader& header, const Region& region,
                                    Image* decoded);
  void Render(const ImageView& pixels, const ImageHeader& header, const Augmentation& augmentation,
              Buffers* buffers, float* dst) const;

  const Dataset* dataset_;
  const DataConfig config_;
  const LoaderOptions options_;
  const Normalization normalization_;
  ImageCache cache_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_IMAGE_SOURCE_H_
