#include "apps/synthesize/image.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "apps/synthesize/background.h"
#include "apps/synthesize/noise.h"

namespace ringtail {
namespace {

enum class Pose { kPortrait, kSitting, kStanding };

// Where and how an animal stands in the image: the same distribution for both species.
struct Placement {
  Pose pose;
  cv::Point2d head_pixels;
  double scale;  // pixels per radius of a head
  double degrees, head_degrees;
  bool flip;
};

cv::Size DrawSize(Rng* rng) {
  constexpr float kMaxAspect = 1.4F;
  const auto width = static_cast<int>(rng->Uniform(kMinSidePixels, kMaxSidePixels));
  const auto height =
      static_cast<int>(static_cast<float>(width) * rng->Uniform(1 / kMaxAspect, kMaxAspect));
  return {width, std::clamp(height, kMinSidePixels, kMaxSidePixels)};
}

Placement DrawPlacement(cv::Size size, Rng* rng) {
  // Where the middle of the animal is, seen from its head, and how many heads of space it needs.
  struct Extent {
    double middle_x, middle_y;
    float smallest, largest;  // radius of the head, of the image's shorter side
  };
  constexpr Extent kExtents[] = {
      {0, 0.2, 0.22F, 0.34F}, {0, 1.0, 0.16F, 0.21F}, {1.1, 0.6, 0.13F, 0.18F}};
  Placement place;
  place.pose = static_cast<Pose>(rng->Below(3));
  const Extent& extent = kExtents[static_cast<int>(place.pose)];
  const double side = std::min(size.width, size.height);
  place.scale = side * rng->Uniform(extent.smallest, extent.largest);
  place.degrees = std::clamp(10 * rng->Normal(), -30.0F, 30.0F);
  place.head_degrees = std::clamp(8 * rng->Normal(), -20.0F, 20.0F);
  place.flip = Chance(0.5, rng);
  const double shift_x = rng->Uniform(-0.12F, 0.12F) * static_cast<float>(size.width);
  const double shift_y = rng->Uniform(-0.12F, 0.12F) * static_cast<float>(size.height);
  const double mirror = place.flip ? -1 : 1;
  place.head_pixels = {size.width / 2.0 + shift_x - mirror * extent.middle_x * place.scale,
                       size.height / 2.0 + shift_y - extent.middle_y * place.scale};
  return place;
}

void DrawAnimal(Species species, const Placement& place, const Coat& coat, cv::Mat* image,
                Rng* rng) {
  const Canvas canvas(*image, place.head_pixels, place.scale, place.degrees, place.flip);
  const BodyShape body = species == Species::kCat ? CatBody(rng) : DogBody(rng);
  switch (place.pose) {
    case Pose::kPortrait:
      DrawShoulders(canvas, coat, body);
      break;
    case Pose::kSitting:
      DrawSittingBody(canvas, coat, body, rng);
      break;
    case Pose::kStanding:
      DrawStandingBody(canvas, coat, body, rng);
      break;
  }
  const Canvas head = canvas.At({0, 0}, 1, place.head_degrees);
  if (species == Species::kCat) {
    DrawCatHead(head, coat, rng);
  } else {
    DrawDogHead(head, coat, rng);
  }
}

// Light, focus and the sensor's noise.
cv::Mat Photograph(const cv::Mat& scene, Rng* rng) {
  const float contrast = rng->Uniform(0.65F, 1.15F), brightness = rng->Uniform(-35, 35);
  const float blur = rng->Uniform(0, 1.3F), noise = rng->Uniform(0, 24);
  cv::Scalar tint;
  for (int c = 0; c < 3; ++c) tint[c] = rng->Uniform(-15, 15);
  cv::Mat light = scene;
  if (blur > 0.4F) cv::GaussianBlur(scene, light, {0, 0}, blur);
  cv::Mat exposed;
  light.convertTo(exposed, CV_32FC3, contrast, 128 * (1 - contrast) + brightness);
  exposed += tint;
  cv::scaleAdd(WhiteNoise(scene.size(), 3, rng), noise, exposed, exposed);
  cv::Mat image;
  exposed.convertTo(image, CV_8UC3);
  return image;
}

}  // namespace

cv::Mat DrawImage(Species species, RngKey key) {
  // Each part draws under its own key, so that one that draws more does not shift the others.
  const auto part = [&](std::string_view name) { return Rng(key.With(name)); };
  Rng frame = part("frame"), background = part("background"), fur = part("coat");
  Rng animal = part("animal"), foreground = part("foreground"), lens = part("lens");
  const cv::Size size = DrawSize(&frame);
  const Placement place = DrawPlacement(size, &frame);
  cv::Mat image = DrawBackground(size, &background);
  DrawAnimal(species, place, DrawCoat(size, place.scale, &fur), &image, &animal);
  DrawForeground(place.scale, &image, &foreground);
  return Photograph(image, &lens);
}

}  // namespace ringtail
