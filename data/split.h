// Train / validation split: a pure function of (config, sorted list of samples).
// By fraction: within each class, samples are ranked by Philox(seed, key); the first round(fraction * n)
// validate. By numbers: the N of Kaggle's "cat.N.jpg". Samples in neither part are left out.
#ifndef RINGTAIL_DATA_SPLIT_H_
#define RINGTAIL_DATA_SPLIT_H_

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"

namespace ringtail {

struct Split {
  std::vector<int64_t> train, validation;  // indices into samples(), rising
};
StatusOr<Split> SplitDataset(const SplitConfig& config, const std::vector<Sample>& samples);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_SPLIT_H_
