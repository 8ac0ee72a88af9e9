// Fingerprints of data sets, so that ranks can compare their images, and a resumed run the images
// that it started with.
#ifndef RINGTAIL_DATA_MANIFEST_H_
#define RINGTAIL_DATA_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// A hash of the class names and of the keys and labels of `indices`, in their order; equal on all
// machines. Ignores the files' content. 64 bits: two different lists collide once in 2^64.
// Thread-safety: a pure function. Cost: about 0.1 us per image.
uint64_t DatasetFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices);

// A hash of one image: its key, its label and its file's content. The sum over many (modulo 2^64)
// is the hash of a data set: it depends neither on their order nor on which rank read which image.
// It does not protect from deliberate changes (the content counts by length and CRC-32C).
// Thread-safety: a pure function. Cost: one pass over the bytes, some 0.2 us per KiB.
uint64_t ImageFingerprint(const Sample& sample, std::span<const std::byte> file);

// Dataset::FileBytes of `indices`, on up to `workers` threads, as each may be a request to a file
// server. ResourceExhausted if the threads cannot be started.
StatusOr<std::vector<int64_t>> FileSizes(const Dataset& dataset,
                                         const std::vector<int64_t>& indices, int workers);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_MANIFEST_H_
