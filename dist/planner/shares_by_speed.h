// SharesBySpeed: images divided in proportion to the hosts' speeds (apps/trainer/division), so that
// all ranks finish a step together.
//
//   slowness s    1     1     1     2          seconds of a step, as one of the hosts has it = 1
//   share         8/7   8/7   8/7   4/7        of an even one: n / (s x sum of all 1 / s)
//
// A step is as long as that of the slowest host, or of the fastest one, with as many images: what
// does not shrink with the images (the update, coding, what a small batch computes less efficiently)
// the slowest one still does.
// Hosts of which the slowest takes at most kAlike times as long as the fastest count as equal, nearly
// as the trainer counts speeds (kSameSpeed: 1 / 0.9). Thread-safety: a value; pure functions. Cost: one pass.
#ifndef RINGTAIL_DIST_PLANNER_SHARES_BY_SPEED_H_
#define RINGTAIL_DIST_PLANNER_SHARES_BY_SPEED_H_

#include <cstdint>
#include <span>

namespace ringtail {

inline constexpr double kAlike = 1.1;

struct SharesBySpeed {
  double slowest = 1,
         fastest = 1;  // of images, relative to an even share; 0 < slowest <= 1 <= fastest

  // `slowness`: a number > 0 for each host; not empty.
  static SharesBySpeed Of(std::span<const double> slowness);

  bool differ() const { return slowest < fastest; }
};

// Images of the slowest or fastest rank: at least one for each of its `parts` (train.accumulation), of
// which it computes as many as any other. Rounded to whole parts as largest remainders do: up for
// the fastest, to the nearest number for the slowest. `even`: images of a rank with an even share,
// > 0.
int64_t ImagesOfSlowest(const SharesBySpeed& shares, int64_t even, int64_t parts);
int64_t ImagesOfFastest(const SharesBySpeed& shares, int64_t even, int64_t parts);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SHARES_BY_SPEED_H_
