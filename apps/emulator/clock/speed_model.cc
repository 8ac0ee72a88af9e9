#include "apps/emulator/clock/speed_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/emulator/clock/event_queue.h"
#include "core/random.h"

namespace ringtail {

SpeedModel::SpeedModel(uint64_t seed, double spread, std::vector<SlowPeriod> slow)
    : seed_(seed), spread_(spread), slow_(std::move(slow)) {}

// The mean of exp(s n) over normal n is exp(s^2 / 2).
double SpeedModel::Jitter(int worker, int64_t step) const {
  if (spread_ == 0) return 1;
  const RngKey key = RngKey(seed_)
                         .With(kEmulationStream)
                         .With(static_cast<uint64_t>(worker))
                         .With(static_cast<uint64_t>(step));
  const std::array<uint32_t, 4> bits = Philox4x32({}, key.bits());
  return std::exp(spread_ * BoxMuller(bits[0], bits[1]).first - spread_ * spread_ / 2);
}

double SpeedModel::SlownessAt(int worker, int64_t time_ns) const {
  double factor = 1;
  for (const SlowPeriod& period : slow_) {
    const bool within = period.from_ns <= time_ns && time_ns < period.to_ns;
    if (period.worker == worker && within) factor *= period.factor;
  }
  return factor;
}

// The first time after `time_ns` at which the speed may change.
int64_t SpeedModel::NextChange(int worker, int64_t time_ns) const {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const SlowPeriod& period : slow_) {
    if (period.worker != worker) continue;
    if (period.from_ns > time_ns) next = std::min(next, period.from_ns);
    if (period.to_ns > time_ns) next = std::min(next, period.to_ns);
  }
  return next;
}

int64_t SpeedModel::EndOf(int worker, int64_t step, int64_t begin_ns, double base_seconds) const {
  double left = base_seconds * Jitter(worker, step);
  int64_t now = begin_ns;
  while (true) {
    const double slowness = SlownessAt(worker, now);
    const int64_t end = After(now, left * slowness);
    const int64_t change = NextChange(worker, now);
    if (end <= change) return end;
    left = std::max(0.0, left - Seconds(change - now) / slowness);
    now = change;
  }
}

}  // namespace ringtail
