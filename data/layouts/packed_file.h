// Packed files: a data set in one file (byte by byte in data/layouts/packed_format.h), written by
// `dogs_vs_cats prepare`, read as any other data set.
//
// The reader keeps the index in memory and reads records with pread: a file that is cut off or
// damaged while a run goes on gives a Status for the images concerned, where a mapped file would
// end the process. A replaced file changes nothing, the old one stays open. Keys are names only,
// never paths. Thread-safety: the Dataset as data/dataset.h says; two writers of one path must not
// run at a time.
#ifndef RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_
#define RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

bool IsPackedFile(const std::string& path);  // whether it begins like one

// Checks header, footer and index; records are checked as they are read. DataLoss if any of it is
// damaged. Read refuses records above `max_file_mib`.
StatusOr<std::unique_ptr<Dataset>> OpenPackedFile(const std::string& path, int32_t max_file_mib);

struct PackedFileOptions {
  // Above 0: images whose shorter side is longer are made smaller to it and encoded as JPEG
  // again. All others, and what cannot be decoded, are taken as they are.
  int32_t short_side = 0;     // pixels
  int32_t jpeg_quality = 95;  // 1 .. 100
  BadImagesConfig limits;     // images beyond them are taken as they are
};

// Called after each image; false stops the writing (Cancelled).
using PackProgress = std::function<bool(int64_t done, int64_t total)>;

// Writes the samples `indices` (rising) of `dataset` to `path`, atomically and durably, with memory
// for one image and the index. An image that cannot be read is an error that names it: scan
// first, and leave it out. `progress` may be empty.
Status WritePackedFile(const Dataset& dataset, const std::vector<int64_t>& indices,
                       const PackedFileOptions& options, const std::string& path,
                       const PackProgress& progress);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_
