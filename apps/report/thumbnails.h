// Small JPEG files of images as the network gets them: cropped, and changed where they are training
// images.
// Thread-safety: the trainer thread only. Errors: those of the loader. Cost: reads each image.
#ifndef RINGTAIL_APPS_REPORT_THUMBNAILS_H_
#define RINGTAIL_APPS_REPORT_THUMBNAILS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/grad_cam/activation_map.h"
#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"

namespace ringtail {

inline constexpr int64_t kThumbnailSize = 128;  // pixels, square

struct Thumbnail {
  int64_t sample = 0;        // index into the dataset
  std::string jpeg;          // the file; empty: the image could not be read
  std::string overlay_jpeg;  // the image under its map; empty: no map
};

// The images `indices`, in that order. `maps`: none, or one for each, which may be empty.
StatusOr<std::vector<Thumbnail>> ImageThumbnails(const Dataset& dataset,
                                                 const std::vector<int64_t>& indices,
                                                 const DataConfig& config,
                                                 std::span<const ActivationMap> maps = {});
// `count` images of the first batch of training, or as many as there are in `indices`.
StatusOr<std::vector<Thumbnail>> TrainingThumbnails(const Dataset& dataset,
                                                    const std::vector<int64_t>& indices,
                                                    int64_t count, uint64_t seed,
                                                    const DataConfig& config);

std::string Base64(const std::string& bytes);  // RFC 4648, section 4

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_THUMBNAILS_H_
