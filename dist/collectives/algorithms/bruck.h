// Bruck: an allgather in the fewest rounds that there can be, in a world of any size.
// (Bruck, Ho, Kipnis, Upfal & Weathersby 1997; for short messages, Thakur, Rabenseifner & Gropp
// 2005.)
//
// In round k, a rank sends all the parts that it has to the rank 2^k further, and receives as many
// from the rank 2^k before: what it has doubles. In the last round it sends only what is still
// missing there. Ranks count modulo N; part c is rank c's.
//
//      N = 6      round 0: 1 further   round 1: 2 further   round 2: 4 further
//      rank 5     5 -- 5 --> 0         54 -- 54 --> 1       54 (of 5432) -- 54 --> 3
//      has then   5 4                  5 4 3 2              5 4 3 2 1 0: everything
//
//   In round k, rank r sends parts r, r - 1, .. r - m + 1, and copies parts r - 2^k, ..
//   r - 2^k - m + 1 (all modulo N), where m is 2^k, and in the last round N - 2^k if that is less.
//
// Each part stays at its place of the array, so that nothing has to be turned round at the end, as
// in the paper. Parts that go round the end of the array are two steps of the same round.
//
//   rounds   log2 N, rounded up          (ring: N - 1)
//   bytes    (N - 1) / N n per rank and direction, the same as the ring's
//   time     log2 N alpha + (N - 1) / N n beta
//
// With every rank on a host of its own it is never slower than the ring. Where ranks share hosts,
// the ring sends each part over the wire of a host only once; allgather_choice.h decides.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BRUCK_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BRUCK_H_

#include <cstdint>
#include <span>

#include "dist/collectives/plan.h"

namespace ringtail {

// Before, EvenPart(count, world, rank) is this rank's; afterwards every part is its owner's.
Plan BruckAllgather(int rank, int world, int64_t count);
// The same with parts of any size, which follow each other: rank r's ends at ends[r].
Plan BruckAllgather(int rank, std::span<const int64_t> ends);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BRUCK_H_
