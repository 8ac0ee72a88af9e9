// TrainingData: the images of a run, listed, split, and scanned once before training begins, so
// that images that cannot be used are in neither part and every step finds whole batches.
//
// Each of several ranks scans a share of the images and tells the others what it found, so that all
// ranks leave out the same images. InvalidArgument if the ranks have different lists of images, or
// files of different sizes (apps/trainer/same_files.h).
// Thread-safety: as Dataset. Errors: those of Dataset::Open and SplitDataset; DataLoss if an image
// is bad and the policy is FAIL, or if more than max_fraction are; InvalidArgument if there are
// fewer images than a batch.
// Cost: Open decodes every image once (about a millisecond per image and core).
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/data_identity.h"
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
  uint64_t contents = 0;      // of the files' contents (data/manifest.h); the same for any ranks

  // All ranks. `bad_list`: the file for the names of the bad ones if they are too many to continue;
  // empty: they are not written.
  static StatusOr<TrainingData> Open(const DataConfig& config, TrainingWorld* world,
                                     const std::string& bad_list = "");
  // The same for a data set that has been opened.
  static StatusOr<TrainingData> Prepare(std::unique_ptr<Dataset> dataset, const DataConfig& config,
                                        TrainingWorld* world, const std::string& bad_list = "");

  // "22480 to train on, 2498 to validate, 22 left out"
  std::string Counts() const;
  DataIdentity Identity() const;
  // InvalidArgument if a network that tells so many classes apart cannot learn from them.
  Status CheckClasses(int64_t outputs) const;
};

// "key,reason" with a heading; quotes where needed (RFC 4180).
std::string BadImagesCsv(const std::vector<BadImage>& bad);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_DATA_H_
