// The 14 operations of TrivialAugment on an image, with Pillow's arithmetic, which torchvision uses
// for images that are not tensors:
//
//   Shear, Translate, Rotate   a pixel of the result takes the pixel where its centre came from;
//                              black outside the image. With p = (x + 1/2, y + 1/2):
//       ShearX  x' = x + m y       ShearY  y' = y + m x       TranslateX  x' = x - m
//       Rotate  by m degrees counterclockwise about the centre
//   Brightness  v = (1 + m) v                          each of these four: whole levels, cut off
//   Color       v = grey + (1 + m) (v - grey)          towards 0, within 0 .. 255; grey is Pillow's
//   Contrast    v = mean + (1 + m) (v - mean)          (19595 R + 38470 G + 7471 B) / 2^16,
//   Sharpness   v = smooth + (1 + m) (v - smooth)      rounded; mean is that of grey, rounded;
//               smooth = (sum of 3 x 3 + 4 v) / 13, rounded; at the border v
//   Posterize   keeps the m upper bits
//   Solarize    v >= m: 255 - v
//   AutoContrast   for each channel: darkest to 0, brightest to 255
//   Equalize       for each channel: the histogram's cumulative sum as a table
//
// Nearest pixels are found in 16.16 fixed point, as in Pillow. Thread-safety: any thread, one
// `spare` each. Cost: one or two passes over the pixels.
// Source: Pillow 9.4 (Geometry.c, Blend.c, ImageOps.py, ImageEnhance.py), torchvision 0.14
// (transforms/autoaugment.py, _apply_op).
#ifndef RINGTAIL_DATA_AUGMENTATION_PIXEL_OPERATION_H_
#define RINGTAIL_DATA_AUGMENTATION_PIXEL_OPERATION_H_

#include <cstdint>
#include <string_view>

#include "data/decoding/image.h"

namespace ringtail {

enum class PixelOperation : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kPixelOperations = 14;

// torchvision's: "ShearX".
std::string_view PixelOperationName(PixelOperation operation);

// An operation and m: a slope, whole pixels, degrees, a change of a factor, bits, or a level.
struct PixelChange {
  PixelOperation operation = PixelOperation::kIdentity;
  double magnitude = 0;
  bool bilinear = false;  // between four pixels, for operations that move pixels; else the nearest
  bool operator==(const PixelChange&) const = default;
};

// Changes `image`, of at least one pixel; `spare` is working memory, reused from image to image.
void ChangePixels(const PixelChange& change, Image* image, Image* spare);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENTATION_PIXEL_OPERATION_H_
