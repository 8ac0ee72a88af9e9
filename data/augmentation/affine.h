// An affine map of an image, with Pillow's arithmetic (Geometry.c): nearest pixels in 16.16 fixed
// point, or linear interpolation, cut off to whole levels. Pixels from outside are black.
// Thread-safety: a pure function. Cost: one pass over the pixels.
#ifndef RINGTAIL_DATA_AUGMENTATION_AFFINE_H_
#define RINGTAIL_DATA_AUGMENTATION_AFFINE_H_

#include "data/decoding/image.h"

namespace ringtail {

// From the centre (x, y) of a pixel of the result to the place in the source that it shows.
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;  // x' = xx x + xy y + x0
  double yx = 0, yy = 1, y0 = 0;  // y' = yx x + yy y + y0
};

// `dst` gets the size of `src`; they are two images.
void MapImage(const Image& src, const AffineMap& map, bool bilinear, Image* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENTATION_AFFINE_H_
