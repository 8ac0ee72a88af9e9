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
#include <memory>
#include <string>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

bool IsPackedFile(const std::string& path);  // whether it begins like one

// Checks header, footer and index; records are checked as they are read. DataLoss if any of it is
// damaged. Read refuses records above `max_file_mib`.
StatusOr<std::unique_ptr<Dataset>> OpenPackedFile(const std::string& path, int32_t max_file_mib);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_PACKED_FILE_H_
