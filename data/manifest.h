// One number for "the same pictures in the same order", so that ranks can compare what they found.
#ifndef RINGTAIL_DATA_MANIFEST_H_
#define RINGTAIL_DATA_MANIFEST_H_

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// A hash of the class names and of keys and labels of `indices`, in their order; equal on all
// machines. Not of what is in the files. 64 bits: two different lists agree by chance once in 2^64.
// Thread-safety: a pure function. Cost: about 0.1 us per picture.
uint64_t DatasetFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_MANIFEST_H_
