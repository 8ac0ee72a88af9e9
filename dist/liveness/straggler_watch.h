// StragglerWatch: which ranks are slow. In a synchronous world the slowest rank sets the pace of
// all, and no step time shows which one it is: all are equally slow. What differs is the time that
// a rank computes by itself (data wait, forward, backward).
//
// Each rank reports the median of its last ten steps, so that one or two long steps do not matter.
// A rank is slow once its median has been 1.5 times as long as that of the others, and 10 ms
// longer, for `lasting`; and no longer slow once it has been down to 1.25 times, or 5 ms, for as
// long. Ten steps of a small network take an instant, and a cause that passes as quickly is nothing
// to act on: another program's time slice, the cores' clock, an evaluation beside it.
//
// Thread-safety: none.
#ifndef RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_
#define RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/liveness/liveness_judge.h"

namespace ringtail {

class StragglerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kLasting{5};

  StragglerWatch(int world_size, std::chrono::milliseconds lasting, RankDescriber describe);

  // `compute_us`: what each rank tells at `now`, 0 if it is not known. Returns what is to be said:
  // once when a rank has become slow, and once when it has ended.
  std::vector<std::string> Update(std::span<const uint64_t> compute_us, TimePoint now);

 private:
  struct Rank {
    bool slow = false;               // as it was said
    std::optional<TimePoint> other;  // since when it has looked otherwise
  };

  std::string Notice(int rank, uint64_t own_us, uint64_t others_us) const;

  const std::chrono::milliseconds lasting_;
  const RankDescriber describe_;
  std::vector<Rank> ranks_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_STRAGGLER_WATCH_H_
