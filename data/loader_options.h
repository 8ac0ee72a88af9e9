// What a DataLoader (data/loader.h) is asked for. A value type.
#ifndef RINGTAIL_DATA_LOADER_OPTIONS_H_
#define RINGTAIL_DATA_LOADER_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace ringtail {

enum class LoaderMode {
  kTrain,            // shuffled by (seed, epoch), random crops, endless, whole batches only
  kEvaluate,         // in list order, centre crop, one pass, last batch padded with label -1
  kEvaluateFlipped,  // the same, flipped left to right
};

struct LoaderOptions {
  LoaderMode mode = LoaderMode::kTrain;
  int64_t batch = 64;
  int64_t image_size = 128;  // pixels, square
  uint64_t seed = 1;
  // This rank's share: rows [first_row, first_row + batch) of each global batch of `global_batch`
  // rows. 0: the batch is the whole.
  int64_t first_row = 0, global_batch = 0;
  // Samples that the user already knows to be bad: left out without a warning.
  std::vector<int64_t> known_bad = {};
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LOADER_OPTIONS_H_
