// PictureSource: the way of one sample into one row of a batch.
//
//   cache? -> Dataset::Read -> InspectPicture -> view (crop) -> DecodeRegion -> RenderPicture
//
// What a row holds is a pure function of (config, options, sample, epoch): see data/loader.h.
// Thread-safety: any thread, one Buffers each.
// Errors: why the picture cannot be used, without its name.
#ifndef RINGTAIL_DATA_PICTURE_SOURCE_H_
#define RINGTAIL_DATA_PICTURE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "data/decoding/render.h"
#include "data/loader.h"
#include "data/picture_cache.h"

namespace ringtail {

class PictureSource {
 public:
  // Working memory of one thread.
  struct Buffers {
    Image decoded;
    RenderBuffers render;
  };

  // `dataset` must outlive the source.
  PictureSource(const Dataset* dataset, const DataConfig& config, const LoaderOptions& options);

  // dst: (3, S, S) f32; undefined after an error.
  Status Load(int64_t sample, int64_t epoch, Buffers* buffers, float* dst);

  CacheStatistics cache_statistics() const { return cache_.statistics(); }

 private:
  View ViewOf(int64_t sample, int64_t epoch, const PictureHeader& header) const;
  Status ReadAndDecode(int64_t sample, int64_t epoch, Buffers* buffers, float* dst);
  StatusOr<ImageView> DecodeOrCache(int64_t sample, const std::vector<std::byte>& bytes,
                                    const PictureHeader& header, const Region& region,
                                    Image* decoded);
  void Render(const ImageView& pixels, const PictureHeader& header, const View& view,
              Buffers* buffers, float* dst) const;

  const Dataset* dataset_;
  const DataConfig config_;
  const LoaderOptions options_;
  const Normalization normalization_;
  PictureCache cache_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_PICTURE_SOURCE_H_
