// The images of a run: listed, split, and looked at once before training begins, so that images
// that cannot be used are in neither part and every step finds whole batches.
//
// Thread-safety: as Dataset. Errors: what Dataset::Open and SplitDataset say; DataLoss if an image
// is bad and the policy is FAIL, or if more than max_fraction are; InvalidArgument if there are
// fewer images than a batch.
// Several ranks look at a share of the images each, and tell the others what they found: every
// rank leaves out the same ones. InvalidArgument if they do not have the same list to begin with, or
// files of other sizes (apps/trainer/same_files.h).
// Cost: Open decodes every image once (about a millisecond each and core).
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/split.h"

namespace ringtail {

struct TrainingData {
  std::unique_ptr<Dataset> dataset;
  Split split;                // usable images only
  std::vector<BadImage> bad;  // left out, with reasons
  uint64_t fingerprint = 0;   // of both parts: keys and labels
  uint64_t contents = 0;  // of what is in the files (data/manifest.h), on no matter how many ranks

  // `world`: null alone. `bad_list`: the file for the names of the bad ones if they are too many to
  // go on; empty: they are not written.
  static StatusOr<TrainingData> Open(const DataConfig& config, TrainingWorld* world = nullptr,
                                     const std::string& bad_list = "");
  // The same for a data set that is at hand.
  static StatusOr<TrainingData> Prepare(std::unique_ptr<Dataset> dataset, const DataConfig& config,
                                        TrainingWorld* world = nullptr,
                                        const std::string& bad_list = "");

  // "22480 to train on, 2498 to validate, 22 left out"
  std::string Counts() const;
};

// "key,reason" with a heading; quotes where needed (RFC 4180).
std::string BadImagesCsv(const std::vector<BadImage>& bad);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_
