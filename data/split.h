// Train / validation split: a pure function of (config, sorted list of samples).
//
// - By numbers, if the config has ranges: the N of Kaggle's "cat.N.jpg" or of "Cat/N.jpg"; samples
//   in neither range are left out.
// - Else by folders, if there are train/ and validation/.
// - Else by fold, if the config has folds: within each class, samples are ranked as below, and, class
//   after class, dealt out to the folds in turn. Every sample is in exactly one fold; the sizes of folds
//   differ by one at most, and so do those of a class in them (as scikit-learn's StratifiedKFold).
// - Else by fraction: within each class, samples are ranked by Philox(seed, kSplitStream, key), and
//   the first round(fraction * n) form the validation part.
//
// Samples without a label are in neither part. Errors: InvalidArgument for wrong ranges, if a part
// is empty, and for folds of images that folders have divided.
// Thread-safety: functions without state. Cost: O(n log n).
#ifndef RINGTAIL_DATA_SPLIT_H_
#define RINGTAIL_DATA_SPLIT_H_

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"

namespace ringtail {

struct Split {
  std::vector<int64_t> train, validation;  // indices into samples(), ascending
};

// Both ranges or none; each 0 <= first <= last; no number in both.
Status CheckNumberRanges(const SplitConfig& config);

// `folds` 0 or 2 .. 1000, `fold` one of them, and no ranges beside them.
Status CheckFolds(const SplitConfig& config);

StatusOr<Split> SplitDataset(const SplitConfig& config, const std::vector<Sample>& samples);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SPLIT_H_
