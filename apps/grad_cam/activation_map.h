// Grad-CAM: how much each place of a feature map spoke for one class.
//
//   alpha_c = mean over y, x of d score / d A[c, y, x]        equation 1
//   L[y, x] = ReLU(sum over c of alpha_c A[c, y, x])          equation 2
//
// A (C, H, W): activations of the last convolutional layer; score: the class's logit, before
// softmax. Then L is divided by its largest value: 0 .. 1. Where nothing spoke for the class, all
// of it stays 0.
// Source: Selvaraju et al. 2017, "Grad-CAM: Visual Explanations from Deep Networks via
// Gradient-based Localization", section 3.
// Thread-safety: values and functions without state. Cost: one pass over A and its gradient.
#ifndef RINGTAIL_APPS_GRAD_CAM_ACTIVATION_MAP_H_
#define RINGTAIL_APPS_GRAD_CAM_ACTIVATION_MAP_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringtail {

struct ActivationMap {
  int64_t height = 0, width = 0;
  std::vector<float> values;  // (height, width), 0 .. 1

  bool empty() const { return values.empty(); }
  float at(int64_t y, int64_t x) const { return values[y * width + x]; }
};

// `activations`, `gradient`: (channels, height, width), finite.
ActivationMap GradCam(std::span<const float> activations, std::span<const float> gradient,
                      int64_t channels, int64_t height, int64_t width);

// Bilinear between the centres of pixels; beyond the outermost centres, their values (what PyTorch
// calls align_corners=False).
ActivationMap Resize(const ActivationMap& map, int64_t height, int64_t width);

// Which ninth of the image has the largest value (the first of equals), in words: "the top left",
// "the centre", "the bottom". Empty if all values are 0. For readers who do not see the map.
std::string Strongest(const ActivationMap& map);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_GRAD_CAM_ACTIVATION_MAP_H_
