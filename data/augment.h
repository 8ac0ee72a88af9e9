// The crop of an image, its flip and its changes of colour: pure functions of a key and the image's
// size.
//
// Training: RandomResizedCrop (Szegedy et al. 2015, "Going deeper with convolutions", section 6):
// an area drawn uniformly from [min_area, max_area] of the image's area, an aspect ratio drawn
// log-uniformly, and a position. If ten draws do not fit, the largest centred crop within the
// aspect limits (torchvision's rule). Then a flip and factors for brightness, contrast and
// saturation, each drawn from [1 - x, 1 + x]; TrivialAugment and random erasing
// (data/augmentation/trivial_augment.h). Evaluation: a centred square of crop_fraction of the
// shorter side, which equals resizing the shorter side to image_size / crop_fraction and cropping
// the centre.
//
// Both are resized in the same two steps: the decoder shrinks by the largest power of two that
// leaves the crop at least image_size pixels on its shorter side, then linear interpolation resizes
// by the rest, a factor below 2 on that side, at which every pixel still counts. So training and
// evaluation see the same sharpness. The draws of a sample depend on its key alone, so a change of
// one parameter does not shift the other draws.
#ifndef RINGTAIL_DATA_AUGMENT_H_
#define RINGTAIL_DATA_AUGMENT_H_

#include <cstdint>

#include "core/random.h"
#include "data/augmentation/trivial_augment.h"
#include "data/data.pb.h"
#include "data/decoding/decode.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

// Pixels of the upright image at full size.
struct CropRectangle {
  int32_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const CropRectangle&) const = default;
};

// The changes to one image.
struct Augmentation {
  CropRectangle crop;
  bool flip = false;                                   // left to right, after the crop
  PixelChange change;                                  // then TrivialAugment's, on u8 pixels
  float brightness = 1, contrast = 1, saturation = 1;  // factors; 1: unchanged
  ErasedRectangle erased;                              // last
};

// width, height: of the upright image; image_size: of the result, in pixels.
Augmentation DrawAugmentation(const AugmentConfig& config, RngKey key, int32_t width,
                              int32_t height, int32_t image_size);
// For evaluation.
Augmentation CentreCrop(const EvaluationCropConfig& config, bool flip, int32_t width,
                        int32_t height);

// The region to decode for a `crop` of image_size x image_size pixels: the crop, rounded to
// pixels of the shrunk image, in the coordinates of the image as stored.
Region RegionOfCrop(const CropRectangle& crop, const ImageHeader& header, int32_t image_size);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENT_H_
