// Four images of three classes, small enough to compute every measure by hand.
#ifndef RINGTAIL_TESTS_APPS_EVALUATION_FOUR_IMAGES_H_
#define RINGTAIL_TESTS_APPS_EVALUATION_FOUR_IMAGES_H_

#include <cmath>

#include "apps/evaluation/scored_images.h"

namespace ringtail {

inline ScoredImages FourImages() {
  ScoredImages scored;
  scored.class_names = {"ant", "bee", "cow"};
  scored.files = {"0.jpg", "1.jpg", "2.jpg", "3.jpg"};
  scored.labels = {0, 1, 2, 2};
  scored.predicted = {0, 0, 2, 1};
  scored.probabilities = {0.6, 0.3, 0.1,   //
                          0.5, 0.4, 0.1,   //
                          0.2, 0.2, 0.6,   //
                          0.1, 0.5, 0.4};  //
  for (int64_t i = 0; i < 4; ++i) {
    scored.losses.push_back(-std::log(scored.row(i)[scored.labels[i]]));
  }
  return scored;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_EVALUATION_FOUR_IMAGES_H_
