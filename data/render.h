// The last step of loading an image: from decoded RGB pixels to a row of a batch.
//
//   src  rgb (h, w, 3) u8, as stored   ->   dst (3, S, S) f32, planes R G B, normalised
//   linear interpolation to S x S -> orientation -> flip -> TrivialAugment's operation
//     -> colour jitter -> (pixel - mean) / std -> 0 in the erased rectangle
//
// Jitter, in this order, each step clamped to 0..255 (torchvision's formulas):
//
//   brightness  p = b p
//   contrast    p = c p + (1 - c) mean(grey)
//   saturation  p = s p + (1 - s) grey           grey = 0.299 R + 0.587 G + 0.114 B
//
// Thread-safety: any thread, one RenderBuffers each. Cost: about 0.1 ms at S = 128 without jitter.
#ifndef RINGTAIL_DATA_RENDER_H_
#define RINGTAIL_DATA_RENDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "data/augment.h"
#include "data/data.pb.h"
#include "data/decoding/exif.h"
#include "data/decoding/image.h"

namespace ringtail {

// normalised = pixel * scale + offset
struct Normalization {
  std::array<float, kChannels> scale{}, offset{};
};
// From DataConfig.mean and .std; ImageNet's where they are empty.
Normalization NormalizationFromConfig(const DataConfig& config);

// Working memory, reused from image to image.
struct RenderBuffers {
  Image resized, oriented;
  std::vector<uint8_t> planes;
};

// `src` is the crop, already cut out. `dst` holds 3 * image_size^2 floats.
void RenderImage(const ImageView& src, const Orientation& orientation,
                 const Augmentation& augmentation, const Normalization& normalization,
                 int32_t image_size, RenderBuffers* buffers, float* dst);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_RENDER_H_
