// The interval in which the accuracy on all images of this kind lies with a probability of 95 %, if
// `correct` of `images` drawn ones are right.
//
//   (p + z^2 / 2n  +-  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n),   z = 1.959964
//
// Unlike p +- z sqrt(p (1 - p) / n) it holds for few images and for accuracies near 1.
// Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference", JASA
// 22, 209-212; recommended by Brown, Cai and DasGupta 2001, Statistical Science 16.
#ifndef RINGTAIL_APPS_EVALUATION_WILSON_INTERVAL_H_
#define RINGTAIL_APPS_EVALUATION_WILSON_INTERVAL_H_

#include <cstdint>

namespace ringtail {

struct Interval {
  double low = 0, high = 1;
};
Interval WilsonInterval(int64_t correct, int64_t images);  // 0 .. 1 without images

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_WILSON_INTERVAL_H_
