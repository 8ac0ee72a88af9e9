#include "apps/evaluation/calibration.h"

#include <cmath>

namespace ringtail {
namespace {

int BinOf(double confidence, int bins) {
  const double width = 1.0 / bins;
  int bin = 0;
  while (bin + 1 < bins && confidence > (bin + 1) * width) ++bin;
  return bin;
}

}  // namespace

Calibration Calibrate(const ScoredImages& scored, int bins) {
  Calibration calibration;
  calibration.bins.resize(bins);
  for (int64_t i = 0; i < scored.images(); ++i) {
    CalibrationBin& bin = calibration.bins[BinOf(scored.confidence(i), bins)];
    ++bin.images;
    bin.accuracy += scored.predicted[i] == scored.labels[i] ? 1 : 0;  // sums, so far
    bin.confidence += scored.confidence(i);
  }
  for (CalibrationBin& bin : calibration.bins) {
    if (bin.images == 0) continue;
    calibration.expected_error +=
        std::abs(bin.accuracy - bin.confidence) / static_cast<double>(scored.images());
    bin.accuracy /= static_cast<double>(bin.images);
    bin.confidence /= static_cast<double>(bin.images);
  }
  return calibration;
}

}  // namespace ringtail
