// An image without a data set, as evaluation sees it: for those who have one image, or pixels, and
// want what a DataLoader of mode kEvaluate or kEvaluateFlipped makes of a file with them, to the
// same bits.
//
//   RT_ASSIGN_OR_RETURN(const EvaluationImage image, EvaluationImage::Decode(bytes, config, size));
//   image.Render(/*flip=*/false, dst);
//
// Thread-safety: a value type; any thread. Cost: decoding the crop, once for both views, and
// rendering each (data/render.h).
// Errors: as data/image_source.h, a predicate without the image's name ("is empty").
#ifndef RINGTAIL_DATA_EVALUATION_IMAGE_H_
#define RINGTAIL_DATA_EVALUATION_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/decoding/exif.h"
#include "data/decoding/image.h"
#include "data/render.h"

namespace ringtail {

class EvaluationImage {
 public:
  // The bytes of an image file. `image_size`: pixels of the rendered square.
  static StatusOr<EvaluationImage> Decode(std::span<const std::byte> bytes,
                                          const DataConfig& config, int64_t image_size);
  // Pixels in memory, upright: as a PNG file that holds them.
  static StatusOr<EvaluationImage> FromPixels(const ImageView& pixels, const DataConfig& config,
                                              int64_t image_size);

  // dst: (3, image_size, image_size) f32, normalised; `flip`: mirrored left to right.
  void Render(bool flip, float* dst) const;

 private:
  EvaluationImage(const DataConfig& config, int64_t image_size);

  Normalization normalization_;
  int32_t image_size_;
  Orientation orientation_;
  Image crop_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_EVALUATION_IMAGE_H_
