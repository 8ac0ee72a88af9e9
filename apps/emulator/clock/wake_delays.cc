#include "apps/emulator/clock/wake_delays.h"

#include <cmath>

namespace ringtail {

double WakeDelays::Next(int worker) {
  if (mean_s_ == 0) return 0;
  while (std::ssize(draws_) <= worker) {
    draws_.emplace_back(
        RngKey(seed_).With(kWakeStream).With(static_cast<uint64_t>(std::ssize(draws_))));
  }
  return -mean_s_ * std::log1p(-double{draws_[static_cast<size_t>(worker)].Uniform()});
}

}  // namespace ringtail
