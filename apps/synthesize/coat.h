// The colours of an animal: fur, markings, eyes. Cats and dogs draw theirs from the same
// distribution, so that no colour tells one from the other.
#ifndef RINGTAIL_APPS_SYNTHESIZE_COAT_H_
#define RINGTAIL_APPS_SYNTHESIZE_COAT_H_

#include <opencv2/core.hpp>

#include "core/random.h"

namespace ringtail {

struct Coat {
  cv::Mat fur;   // 8-bit BGR, as large as the image: colour, stripes or patches, grain
  cv::Mat pale;  // the same for muzzle and belly
  cv::Scalar contour;
  cv::Scalar nose, iris, inner_ear, mouth;
  cv::Scalar collar;
  bool has_collar = false;
};

// `head_pixels`: the radius of the head; markings and grain are sized by it.
Coat DrawCoat(cv::Size size, double head_pixels, Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_COAT_H_
