// Augmentation that is weak in the first epochs, while the network learns what everybody would see, and
// full later, when it could learn images by heart (Tan and Le 2021, "EfficientNetV2", section 4.2:
// regularization grows with the image size).
//
//   strength  1 |        ________
//               |     _/
//   ramp_start  |___/
//               +--------------- epoch
//               0      ramp_epochs
//
// Scaled by it: how much smaller than the whole image a crop may be (1 - min_area), brightness, contrast
// and saturation, and the probability of erasing. Not: aspect, mirror, TrivialAugment, mixup, cutmix.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_AUGMENTATION_AUGMENTATION_RAMP_H_
#define RINGTAIL_DATA_AUGMENTATION_AUGMENTATION_RAMP_H_

#include <cstdint>

#include "data/data.pb.h"

namespace ringtail {

// ramp_start .. 1; 1: full.
float AugmentationStrength(const AugmentConfig& config, int64_t epoch);
// What images of that epoch are augmented with.
AugmentConfig AugmentationOfStrength(const AugmentConfig& config, float strength);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENTATION_AUGMENTATION_RAMP_H_
