// What stands behind and before an animal; the same distribution for both species.
#ifndef RINGTAIL_APPS_SYNTHESIZE_BACKGROUND_H_
#define RINGTAIL_APPS_SYNTHESIZE_BACKGROUND_H_

#include <opencv2/core.hpp>

#include "core/random.h"

namespace ringtail {

// A gradient with soft clouds, often a floor, stripes or checks, and out-of-focus shapes: triangles
// and drops among them, so that no single ear gives an animal away. 8-bit BGR.
cv::Mat DrawBackground(cv::Size size, Rng* rng);

// Sometimes draws stalks, leaves or a bar over the image, each narrower than a head.
void DrawForeground(double head_pixels, cv::Mat* image, Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_BACKGROUND_H_
