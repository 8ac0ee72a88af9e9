// Images that cannot be used, and how many of them a run tolerates.
// Thread-safety: a pure function.
#ifndef RINGTAIL_DATA_BAD_IMAGES_H_
#define RINGTAIL_DATA_BAD_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"

namespace ringtail {

struct BadImage {
  int64_t sample = 0;       // index into the dataset
  std::string key, reason;  // "cat.7.jpg", "is truncated after 48 of 96 rows"
};

// OK, or DataLoss with a summary if `bad` is more than the policy allows among `total` images, or
// all of them: no policy trains on nothing.
Status CheckBadImages(const std::vector<BadImage>& bad, int64_t total,
                      const BadImagesConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_BAD_IMAGES_H_
