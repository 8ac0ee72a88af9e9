// Numbers for "the same images", so that ranks can compare what they found, and a run that goes on
// what it began with.
#ifndef RINGTAIL_DATA_MANIFEST_H_
#define RINGTAIL_DATA_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// A hash of the class names and of keys and labels of `indices`, in their order; equal on all
// machines. Not of what is in the files. 64 bits: two different lists agree by chance once in 2^64.
// Thread-safety: a pure function. Cost: about 0.1 us per image.
uint64_t DatasetFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices);

// A hash of one image: its key, its label and what is in its file. The sum over many, which
// overflows, hangs neither on their order nor on who has looked at which: it is that of a data set.
// Changed on purpose, files can be made to agree (the content counts by length and CRC-32C).
// Thread-safety: a pure function. Cost: one pass over the bytes, some 0.2 us per KiB.
uint64_t ImageFingerprint(const Sample& sample, std::span<const std::byte> file);

// Dataset::FileBytes of `indices`, asked for by up to `workers` threads, as each may be a question to
// a file server. ResourceExhausted if they cannot be started.
StatusOr<std::vector<int64_t>> FileSizes(const Dataset& dataset,
                                         const std::vector<int64_t>& indices, int workers);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_MANIFEST_H_
