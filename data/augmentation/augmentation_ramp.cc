#include "data/augmentation/augmentation_ramp.h"

#include <algorithm>

namespace ringtail {

float AugmentationStrength(const AugmentConfig& config, int64_t epoch) {
  if (static_cast<double>(epoch) >= config.ramp_epochs()) return 1;
  const auto done = static_cast<float>(static_cast<double>(epoch) / config.ramp_epochs());
  return config.ramp_start() + (1 - config.ramp_start()) * done;
}

AugmentConfig AugmentationOfStrength(const AugmentConfig& config, float strength) {
  AugmentConfig weaker = config;
  weaker.set_min_area(std::min(1 - strength * (1 - config.min_area()), config.max_area()));
  weaker.set_brightness(strength * config.brightness());
  weaker.set_contrast(strength * config.contrast());
  weaker.set_saturation(strength * config.saturation());
  weaker.set_erasing(strength * config.erasing());
  return weaker;
}

}  // namespace ringtail
