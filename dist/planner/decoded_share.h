// DecodedShare: how many of the images that a rank loads in a run it has to decode: those that it has
// not met before, and those for which its cache has no room (data/image_cache.h).
//
//   epoch             1     2     3     4      e
//   decodes, alone    1     0     0     0      max(1 - cached, (1 - 1/N)^(e - 1))
//            of 8     1  0.88  0.77  0.67
//
// So the more hosts, the more they decode, if every epoch deals all images among them anew: of 16
// epochs a rank alone 6 %, one of eight 44 %. Images that are dealt once for all epochs (data.shards,
// data/sampler.h) each rank decodes as if it were alone with its part, of which it needs to keep no
// more than that.
// Cost: a few operations per epoch, of 15,000 at most. Thread-safety: a pure function.
#ifndef RINGTAIL_DIST_PLANNER_DECODED_SHARE_H_
#define RINGTAIL_DIST_PLANNER_DECODED_SHARE_H_

#include <cstdint>

namespace ringtail {

// Mean of `epochs` > 0, the last of which may be a part; `cached`: the share of all images for which
// a rank has room, 0 to 1. ranks >= 1.
double DecodedShare(int64_t ranks, double epochs, double cached);
// The same, if each rank has its own part of the images for the whole run.
double DecodedShareOfShard(int64_t ranks, double epochs, double cached);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_DECODED_SHARE_H_
