// SpeedModel: how long a worker takes for its work, in virtual time.
//
//   seconds = base x jitter(worker, step) / speed(worker, t)
//
//   jitter   lognormal with mean 1 and the given spread of its logarithm; a pure function of
//            (seed, worker, step), so that it does not depend on what else is drawn
//   speed    1, or 1 / factor within a slow period: work that lies half in one is half slow
//
//   speed  1 |------.        .------      slow { worker: 1 factor: 4 from_s: 10 to_s: 20 }
//        1/4 |      '--------'
//            0      10       20  s
//
// Periods that overlap multiply. Thread-safety: immutable. Cost: O(periods) per call.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_SPEED_MODEL_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_SPEED_MODEL_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace ringtail {

struct SlowPeriod {
  int worker = 0;
  double factor = 1;  // > 0: work takes so many times as long
  int64_t from_ns = 0, to_ns = std::numeric_limits<int64_t>::max();
};

class SpeedModel {
 public:
  // `spread`: the standard deviation of the jitter's logarithm; 0: none.
  SpeedModel(uint64_t seed, double spread, std::vector<SlowPeriod> slow);

  double Jitter(int worker, int64_t step) const;
  // When work ends that the worker begins at `begin_ns`, and that would take `base_seconds` at full
  // speed without jitter.
  int64_t EndOf(int worker, int64_t step, int64_t begin_ns, double base_seconds) const;

 private:
  double SlownessAt(int worker, int64_t time_ns) const;
  int64_t NextChange(int worker, int64_t time_ns) const;

  const uint64_t seed_;
  const double spread_;
  const std::vector<SlowPeriod> slow_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_SPEED_MODEL_H_
