// What TrivialAugment does to an image, and which part of it random erasing covers: pure functions
// of a key, each draw with a key of its own.
//
// TrivialAugment: one of 14 operations (pixel_operation.h), each as likely, at one of 31
// magnitudes, each as likely, with either sign where there are two: the "wide" ranges, as
// torchvision's TrivialAugmentWide has them (shear 0.99, rotation 135 degrees, factors 1 +- 0.99,
// 8 to 2 bits, levels 255 to 0), but that the longest translation, there 32 pixels, is 32/224 of
// the side: a network may train at several sizes. Source: Mueller & Hutter 2021, "TrivialAugment:
// Tuning-free Yet State-of-the-Art Data Augmentation".
//
// Random erasing: with a probability, a rectangle of 2 to 33 % of the area, of an aspect ratio
// drawn log-uniformly from 0.3 .. 3.3, anywhere within the image, which gets the mean colour
// (data.mean: 0 once normalised). If ten draws do not fit, none. Source: Zhong et al. 2017, "Random
// Erasing Data Augmentation", with torchvision's defaults. Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_AUGMENTATION_TRIVIAL_AUGMENT_H_
#define RINGTAIL_DATA_AUGMENTATION_TRIVIAL_AUGMENT_H_

#include <cstdint>
#include <string>

#include "core/random.h"
#include "data/augmentation/pixel_operation.h"
#include "data/data.pb.h"

namespace ringtail {

inline constexpr int kMagnitudeBins = 31;

// `bin` 0 .. kMagnitudeBins - 1, with the sign where there are two; 0 for operations that have
// none. `image_size` in pixels.
double MagnitudeOfBin(PixelOperation operation, int bin, bool negative, int32_t image_size);

// Identity if config.trivial_augment is OFF.
PixelChange DrawPixelChange(const AugmentConfig& config, RngKey key, int32_t image_size);

// Pixels of the image of image_size x image_size; a width of 0: none.
struct ErasedRectangle {
  int32_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const ErasedRectangle&) const = default;
};
ErasedRectangle DrawErasedRectangle(const AugmentConfig& config, RngKey key, int32_t image_size);

// "TrivialAugment (bilinear), random erasing of 25 % of the images, mixup (alpha 0.2)"; empty if all
// are off.
std::string DescribeAugmentations(const AugmentConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENTATION_TRIVIAL_AUGMENT_H_
