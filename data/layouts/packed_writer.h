// Writes a packed file (data/layouts/packed_format.h), optionally with smaller images.
#ifndef RINGTAIL_DATA_LAYOUTS_PACKED_WRITER_H_
#define RINGTAIL_DATA_LAYOUTS_PACKED_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

struct PackedFileOptions {
  // Above 0: images with a longer shorter side are shrunk to this one and encoded as JPEG again.
  // All others, including those that cannot be decoded, are copied unchanged.
  int32_t short_side = 0;     // pixels
  int32_t jpeg_quality = 95;  // 1 .. 100
  BadImagesConfig limits;     // images beyond them are copied unchanged
};

// Called after each image; false stops the writing (Cancelled).
using PackProgress = std::function<bool(int64_t done, int64_t total)>;

// Writes the samples `indices` (ascending) of `dataset` to `path`, atomically and durably, with
// memory for one image and the index. An image that cannot be read is an error that names it: scan
// first (data/scan.h), and leave it out. `progress` may be empty.
// Thread-safety: one writer per path.
Status WritePackedFile(const Dataset& dataset, const std::vector<int64_t>& indices,
                       const PackedFileOptions& options, const std::string& path,
                       const PackProgress& progress);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_PACKED_WRITER_H_
