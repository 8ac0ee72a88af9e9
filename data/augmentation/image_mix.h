// Mixup and cutmix: two training images become two mixtures, and their labels are mixed in the same
// shares. Applied after all other augmentation, to normalised pixels.
//
//   share   of an image that is its own; the rest is its partner's. Both of a pair have the same.
//   mixup   x = share x_own + (1 - share) x_partner, pixel by pixel; share = max(l, 1 - l) with
//           l ~ Beta(alpha, alpha). A pair gives the same two mixtures with l and with 1 - l, so
//           which of them is called whose costs nothing, and each image keeps at least a half.
//   cutmix  a rectangle of sqrt(1 - l) of each side, around a point drawn uniformly, cut at the
//           image's edges, changes places; share = 1 - its area / the image's.
//
// Whose partner is whose, data/loader.h says. Sources: Zhang et al. 2018, "mixup: Beyond Empirical
// Risk Minimization"; Yun et al. 2019, "CutMix: Regularization Strategy to Train Strong Classifiers
// with Localizable Features"; both as in timm's Mixup in mode "pair" with correct_lam.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_AUGMENTATION_IMAGE_MIX_H_
#define RINGTAIL_DATA_AUGMENTATION_IMAGE_MIX_H_

#include <cstdint>
#include <span>
#include <string>

#include "core/random.h"
#include "data/data.pb.h"

namespace ringtail {

struct ImageMix {
  enum class Kind { kNone, kMixup, kCutmix };
  Kind kind = Kind::kNone;
  float share = 1;                              // 0 .. 1; 1 of kNone
  int32_t x = 0, y = 0, width = 0, height = 0;  // kCutmix: the rectangle, pixels
  bool operator==(const ImageMix&) const = default;
};

// Whether the config has mixup or cutmix on.
bool MixesImages(const AugmentConfig& config);

// Of a pair of images of image_size x image_size pixels; `key` is the pair's. kNone if both are off,
// or if the draw leaves the images as they are.
ImageMix DrawMix(const AugmentConfig& config, RngKey key, int32_t image_size);

// Beta(alpha, alpha), 0 .. 1; alpha > 0. Marsaglia & Tsang 2000, "A simple method for generating
// gamma variables", in logarithms, so that a small alpha gives neither 0 / 0 nor a loss of digits.
double DrawBeta(double alpha, Rng* rng);

// `image` and `partner` are (3, S, S) f32 before mixing; changes `image`.
void MixInto(const ImageMix& mix, int32_t image_size, std::span<const float> partner,
             std::span<float> image);
// Mixes both, to the same bits as MixInto of each.
void MixPair(const ImageMix& mix, int32_t image_size, std::span<float> first,
             std::span<float> second);

// "mixup (alpha 0.2)", "mixup (alpha 0.2) or, of 50 % of the pairs, cutmix (alpha 1)"; "": off.
std::string DescribeMix(const AugmentConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_AUGMENTATION_IMAGE_MIX_H_
