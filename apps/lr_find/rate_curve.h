// The curve of a learning-rate range test, and the rates that it suggests.
//
//   rate i      from (to / from) ^ (i / steps)       steps of one training run, each at a higher rate
//   smoothed    exponential mean of the losses, 0.98 of the mean before, debiased as Adam's moments
//   end         the last rate, a loss that is not finite, or a smoothed loss of four times the lowest
//   considered  without the first tenth of the steps, where the mean is noise, and the last five
//   valley      of the longest sequence of points with falling losses, the one at half its length (a
//               third, and half of a third, behind its start)
//   steepest    where the smoothed loss falls most per logarithm of the rate
//
// Source: Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section 3.3; numbers and
// suggestions are those of fastai's lr_find (schedule.py: valley, steep), whose `valley` is its
// default. Thread-safety: value types.
#ifndef RINGTAIL_APPS_LR_FIND_RATE_CURVE_H_
#define RINGTAIL_APPS_LR_FIND_RATE_CURVE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct RateRange {
  double from = 0, to = 0;  // 0 < from < to
  int64_t steps = 100;
};
double RateOfStep(const RateRange& range, int64_t step);

struct RatePoint {
  double rate = 0, loss = 0, smoothed = 0;
};

// Takes the losses one after the other.
class RateCurve {
 public:
  explicit RateCurve(const RateRange& range) : range_(range) {}

  // Of the step at RateOfStep(range, points().size()). False: that was the end.
  bool Add(double loss);

  const std::vector<RatePoint>& points() const { return points_; }  // finite ones
  bool diverged() const { return diverged_; }                       // it ended before the last rate

 private:
  RateRange range_;
  std::vector<RatePoint> points_;
  double mean_ = 0, lowest_ = 0;
  bool diverged_ = false;
};

struct RateSuggestion {
  double valley = 0, steepest = 0;
  // By how much of its value the smoothed loss falls, in the sequence of the valley.
  double fall = 0;
};
inline constexpr int64_t kFewestPoints = 30;
// FailedPrecondition, with what to do, if there are fewer than kFewestPoints, or fewer than half of it
// that are considered, or if the loss never falls.
StatusOr<RateSuggestion> SuggestRate(const RateRange& range, std::span<const RatePoint> points);

// The smoothed loss over the logarithm of the rate, in characters: `height` lines of `width` columns
// and two lines below; losses far above the first are cut. Ends with a newline.
std::string DrawCurve(std::span<const RatePoint> points, int width, int height);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LR_FIND_RATE_CURVE_H_
