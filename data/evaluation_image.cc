#include "data/evaluation_image.h"

#include "data/augment.h"
#include "data/decoding/decode.h"
#include "data/decoding/image_guard.h"
#include "data/decoding/image_size.h"
#include "data/decoding/shrink_pixels.h"

namespace ringtail {
namespace {

Region CentreRegion(const ImageHeader& header, const DataConfig& config, int32_t image_size) {
  const Augmentation centre = CentreCrop(config.evaluation(), /*flip=*/false,
                                         header.upright_width(), header.upright_height());
  return RegionOfCrop(centre.crop, header, image_size);
}

}  // namespace

EvaluationImage::EvaluationImage(const DataConfig& config, int64_t image_size)
    : normalization_(NormalizationFromConfig(config)),
      image_size_(static_cast<int32_t>(image_size)) {}

StatusOr<EvaluationImage> EvaluationImage::Decode(std::span<const std::byte> bytes,
                                                  const DataConfig& config, int64_t image_size) {
  EvaluationImage image(config, image_size);
  RT_ASSIGN_OR_RETURN(const ImageHeader header, InspectImage(bytes, config.bad_images()));
  image.orientation_ = header.orientation;
  RT_RETURN_IF_ERROR(
      DecodeRegion(bytes, header, CentreRegion(header, config, image.image_size_), &image.crop_));
  return image;
}

StatusOr<EvaluationImage> EvaluationImage::FromPixels(const ImageView& pixels,
                                                      const DataConfig& config,
                                                      int64_t image_size) {
  EvaluationImage image(config, image_size);
  RT_RETURN_IF_ERROR(CheckImageSize(pixels.width, pixels.height, config.bad_images()));
  const ImageHeader header{
      .format = ImageFormat::kPng, .width = pixels.width, .height = pixels.height};
  RT_RETURN_IF_ERROR(
      ShrinkPixels(pixels, CentreRegion(header, config, image.image_size_), &image.crop_));
  return image;
}

void EvaluationImage::Render(bool flip, float* dst) const {
  Augmentation view;
  view.flip = flip;
  RenderBuffers buffers;
  RenderImage(ImageView(crop_), orientation_, view, normalization_, image_size_, &buffers, dst);
}

}  // namespace ringtail
