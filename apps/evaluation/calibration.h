// Whether probabilities mean what they say: of the images of which the network is 80 % sure, 80 %
// should be right. Images are sorted into bins of equal width by confidence, the probability of the
// predicted class; a bin holds its upper end and not its lower one (the first: 0, too).
//
//   expected calibration error = sum over bins of images_b / images |accuracy_b - confidence_b|
//
// Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3; 15 bins as there.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_EVALUATION_CALIBRATION_H_
#define RINGTAIL_APPS_EVALUATION_CALIBRATION_H_

#include <cstdint>
#include <vector>

#include "apps/evaluation/scored_images.h"

namespace ringtail {

inline constexpr int kCalibrationBins = 15;

struct CalibrationBin {
  int64_t images = 0;
  double accuracy = 0, confidence = 0;  // means; 0 of a bin without images
};

struct Calibration {
  std::vector<CalibrationBin> bins;  // confidence 0 .. 1/bins, 1/bins .. 2/bins, ...
  double expected_error = 0;         // 0 .. 1
};
Calibration Calibrate(const ScoredImages& scored, int bins = kCalibrationBins);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_CALIBRATION_H_
