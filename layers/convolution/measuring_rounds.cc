#include "layers/convolution/measuring_rounds.h"

#include <algorithm>

namespace ringtail {
namespace {

// At least and at most. Calls of microseconds are repeated more often, because a disturbance may
// outlast several of them.
constexpr int kMinRounds = 4, kMaxRounds = 12;
constexpr double kSecondsForRounds = 0.08, kSecondsIfDisturbed = 0.3;
constexpr double kSecondsAtMost = 1;  // after which not even the minimum is done

double MostTimesTheBest(int round) {
  constexpr double kOfOneCall = 3, kOfTwoCalls = 1.8, kOfMore = 1.3;
  return round == 2 ? kOfOneCall : round == 3 ? kOfTwoCalls : kOfMore;
}

}  // namespace

double LeastSeconds(std::span<const Measurement> measurements) {
  return std::ranges::min_element(measurements, {}, &Measurement::least)->least;
}

bool TakesPart(const Measurement& measurement, double best_seconds, int round) {
  return round < 2 || measurement.least <= MostTimesTheBest(round) * best_seconds;
}

bool AreEnough(std::span<const Measurement> measurements, int rounds, double seconds) {
  if (rounds > kMaxRounds || seconds > kSecondsAtMost) return true;
  if (rounds <= kMinRounds || seconds <= kSecondsForRounds) return false;
  if (seconds > kSecondsIfDisturbed) return true;
  const double best = LeastSeconds(measurements);
  return std::ranges::all_of(measurements, [&](const Measurement& m) {
    return !TakesPart(m, best, rounds) || m.undisturbed >= kMinRounds;
  });
}

}  // namespace ringtail
