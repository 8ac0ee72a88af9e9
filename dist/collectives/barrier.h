// Barrier by dissemination: no rank leaves before every rank has come. (Hensgen, Finkel & Manber
// 1988.)
//
// In round k, a rank tells the one 2^k places further that it is here, and hears it from the one
// 2^k before. After that it knows, directly or through others, of the 2^(k+1) - 1 ranks before it:
//
//      N = 6      round 0: 1 further      round 1: 2 further      round 2: 4 further
//      rank 5 knows of   4                4, 3, 2                 4, 3, 2, 1, 0: all
//
//   rounds   log2 N rounded up, in every world
//   bytes    one element in each
//
// An allreduce of one element is a barrier, too, but has more rounds in worlds that are no power of
// two. A step of no elements is not sent, so the plan works on an array of one element, whose value
// is of no interest, and lost.
#ifndef RINGTAIL_DIST_COLLECTIVES_BARRIER_H_
#define RINGTAIL_DIST_COLLECTIVES_BARRIER_H_

#include "dist/collectives/plan.h"

namespace ringtail {

Plan DisseminationBarrier(int rank, int world);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_BARRIER_H_
