#include "optim/noise_scale.h"

#include <fmt/format.h>

#include <cmath>

#include "core/check.h"

namespace ringtail {

void NoiseScale::Add(const Step& step) {
  RT_CHECK(step.ranks >= 2 && step.batch > 0, "one rank has one batch size");
  const double between_ranks = step.rank_squares - step.batch * step.squares;
  const double noise = between_ranks / static_cast<double>(step.ranks - 1);
  const double gradient = step.squares - noise / step.batch;
  noise_ = kDecay * noise_ + (1 - kDecay) * noise;
  gradient_ = kDecay * gradient_ + (1 - kDecay) * gradient;
  ++steps_;
}

// Corrects the bias of an average that starts at 0 (Kingma & Ba 2015, section 3).
double NoiseScale::Corrected(double average) const {
  return steps_ > 0 ? average / (1 - std::pow(kDecay, static_cast<double>(steps_))) : 0;
}

double NoiseScale::gradient() const { return Corrected(gradient_); }
double NoiseScale::noise() const { return Corrected(noise_); }

std::optional<double> NoiseScale::Images() const {
  if (steps_ < kMinSteps || !(gradient_ > 0)) return std::nullopt;
  return noise_ / gradient_;
}

std::string NoiseScale::Describe() const {
  const std::optional<double> images = Images();
  if (!images) return "";
  return fmt::format(
      "noise scale {0:.0f}: beyond a global batch of about {0:.0f} more ranks stop helping",
      *images);
}

}  // namespace ringtail
