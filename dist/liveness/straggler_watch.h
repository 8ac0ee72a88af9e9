// StragglerWatch: which ranks are slow. In a synchronous world the slowest rank sets the pace of
// all, and nobody's step time shows who it is: all are equally slow. What differs is the time that
// a rank computes by itself (data wait, forward, backward).
//
// Each rank tells the median of its last ten steps, so that one long step, or two, do not matter. A
// rank is slow while its median is 1.5 times as long as that of the others, and no longer slow
// when it is down to 1.25 times, so that one at the limit is not reported all the time.
//
// Thread-safety: none.
#ifndef RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_
#define RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/liveness/liveness_judge.h"

namespace ringtail {

class StragglerWatch {
 public:
  StragglerWatch(int world_size, RankDescriber describe);

  // `compute_us`: what each rank tells, 0 if it is not known. Returns what is to be said: once when
  // a rank begins to be slow, and once when it ends.
  std::vector<std::string> Update(std::span<const uint64_t> compute_us);

 private:
  const RankDescriber describe_;
  std::vector<bool> slow_;  // by rank
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_
