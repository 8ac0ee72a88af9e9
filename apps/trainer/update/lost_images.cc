#include "apps/trainer/update/lost_images.h"

#include <fmt/core.h>

#include "data/image_name.h"

namespace ringtail {

Status LostImages::Check(int64_t images, int64_t read) {
  lost_in_a_row_ = read > 0 ? 0 : lost_in_a_row_ + images;
  if (lost_in_a_row_ < kMostLost) return OkStatus();
  return DataLoss(
      fmt::format("none of the last {} images could be read; is {} (data.path) still there?",
                  lost_in_a_row_, EscapeName(data_path_)));
}

}  // namespace ringtail
