// Packed files: a data set in one file (byte by byte in data/layouts/packed_format.h), written by
// `dogs_vs_cats prepare` (data/layouts/packed_writer.h), read like any other data set.
//
// The Dataset keeps the index in memory and reads records with pread: a file that is truncated or
// damaged during a run gives a Status for the affected images, where a mapped file would end the
// process. Replacing the file has no effect on an open Dataset. Keys are names only, never paths.
// Thread-safety: that of Dataset (data/dataset.h).
#ifndef RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_
#define RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

bool IsPackedFile(const std::string& path);  // whether it starts like one

// Checks header, footer and index (DataLoss if one is damaged); records are checked when they are
// read. Read refuses records above `max_file_mib`.
StatusOr<std::unique_ptr<Dataset>> OpenPackedFile(const std::string& path, int32_t max_file_mib);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_
