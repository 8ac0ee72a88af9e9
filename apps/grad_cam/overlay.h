// A map drawn over its image, and images as files.
//
// Half of each pixel is the image, the other half the map's colour, from dark violet (0) through
// green to yellow (1): viridis, whose lightness rises evenly with the value, for people with any
// kind of colour vision and in grey alike (Smith and van der Walt 2015, "A Better Default Colormap
// for Matplotlib").
// Thread-safety: functions without state. Cost: a few passes over the pixels.
#ifndef RINGTAIL_APPS_GRAD_CAM_OVERLAY_H_
#define RINGTAIL_APPS_GRAD_CAM_OVERLAY_H_

#include <cstdint>
#include <string>

#include "apps/grad_cam/activation_map.h"
#include "data/decoding/image.h"
#include "data/render.h"

namespace ringtail {

// From normalised planes R G B of `size` x `size` pixels, as a network reads them.
Image ImageFromPlanes(const float* planes, int64_t size, const Normalization& normalization);

// `map` is resized to the image, and must not be empty.
Image Overlay(const Image& image, const ActivationMap& map);

// A JPEG file; quality 0 .. 100.
std::string EncodeJpeg(const Image& image, int quality);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_GRAD_CAM_OVERLAY_H_
