// Random fields: what fur, backgrounds and light are made of.
//
// Never draw twice within the arguments of one call: C++ leaves their order open, and an image
// must not depend on the compiler.
#ifndef RINGTAIL_APPS_SYNTHESIZE_NOISE_H_
#define RINGTAIL_APPS_SYNTHESIZE_NOISE_H_

#include <opencv2/core.hpp>

#include "core/random.h"

namespace ringtail {

// A smooth f32 field in about -1 .. 1 whose hills are `grain_pixels` apart.
cv::Mat SmoothNoise(cv::Size size, double grain_pixels, Rng* rng);

// An f32 field with `channels` channels, each value uniform in -1 .. 1
// and independent of the others.
cv::Mat WhiteNoise(cv::Size size, int channels, Rng* rng);

// Colours, BGR.
cv::Scalar RandomColor(Rng* rng);                            // any, muted more or less
cv::Scalar Jittered(cv::Scalar color, double by, Rng* rng);  // each channel moved by up to `by`
cv::Scalar Mixed(const cv::Scalar& a, const cv::Scalar& b, double fraction_of_b);

bool Chance(double probability, Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_NOISE_H_
