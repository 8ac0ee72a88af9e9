// Finds every bad image before a run starts, so that bad images can be left out of the list and
// every rank has the same list.
#ifndef RINGTAIL_DATA_SCAN_H_
#define RINGTAIL_DATA_SCAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/status.h"
#include "data/bad_images.h"
#include "data/data.pb.h"
#include "data/dataset.h"

namespace ringtail {

// Checks each sample of `indices`: reads the file and its header and, with `decode`, all of its
// pixels. In parallel; the result is sorted by sample. `stop` is called before each image, by any
// thread; once it returns true the result is Cancelled. `fingerprint` (may be null) becomes the sum
// of ImageFingerprint (data/manifest.h) over the usable images.
// Errors: ResourceExhausted if the threads cannot be started.
// Cost: one read, and with `decode` one decode, of every file.
StatusOr<std::vector<BadImage>> ScanImages(const Dataset& dataset,
                                           const std::vector<int64_t>& indices,
                                           const DataConfig& config, bool decode,
                                           const std::function<bool()>& stop = {},
                                           uint64_t* fingerprint = nullptr);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SCAN_H_
