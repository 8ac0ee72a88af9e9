// One image: background, animal, foreground, light, lens.
#ifndef RINGTAIL_APPS_SYNTHESIZE_IMAGE_H_
#define RINGTAIL_APPS_SYNTHESIZE_IMAGE_H_

#include <opencv2/core.hpp>

#include "apps/synthesize/animal.h"
#include "core/random.h"

namespace ringtail {

constexpr int kMinSidePixels = 160, kMaxSidePixels = 320;

// 8-bit BGR, each side kMinSidePixels .. kMaxSidePixels; a function of its arguments alone.
cv::Mat DrawImage(Species species, RngKey key);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_IMAGE_H_
