// How often the candidates of a convolution are called to find the fastest (measure_algorithms.h).
//
//   round 0   touches memory and code, and counts only where there is no time for another
//   round 1   one call of each candidate, and so in each round after it
//   round 2   without those that took more than 3 times the best
//   round 3   ... 1.8 times the best
//   round 4 and on  ... 1.3 times the best, until 0.08 s have passed
//
// A call that another program disturbs takes twice as long and more: one alone does not rule a
// candidate out, and where cores are shared there are more rounds, of up to 0.3 s, until each
// candidate has had the minimum of calls undisturbed.
// Thread-safety: functions without state.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_MEASURING_ROUNDS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_MEASURING_ROUNDS_H_

#include <limits>
#include <span>

namespace ringtail {

// A candidate, as far as it was measured.
struct Measurement {
  double least = std::numeric_limits<double>::infinity();  // seconds of a call
  int undisturbed = 0;                                     // calls
};

// Of the fastest candidate; at least one is needed.
double LeastSeconds(std::span<const Measurement> measurements);

// Whether a candidate is called in `round`.
bool TakesPart(const Measurement& measurement, double best_seconds, int round);

// Whether `rounds` that took `seconds` are enough.
bool AreEnough(std::span<const Measurement> measurements, int rounds, double seconds);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_MEASURING_ROUNDS_H_
