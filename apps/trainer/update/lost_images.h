// LostImages: notices that the images of a run are gone. The scan before the run has left out bad
// ones, so whole batches that cannot be read mean that the folder is no longer there; a batch of
// few images may be all bad by chance.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_LOST_IMAGES_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_LOST_IMAGES_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace ringtail {

class LostImages {
 public:
  explicit LostImages(std::string data_path) : data_path_(std::move(data_path)) {}

  // After a step of `images` images over all ranks, of which `read` could be read. DataLoss once
  // kMostLost or more in a row could not.
  static constexpr int64_t kMostLost = 8;
  Status Check(int64_t images, int64_t read);

 private:
  const std::string data_path_;
  int64_t lost_in_a_row_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_LOST_IMAGES_H_
