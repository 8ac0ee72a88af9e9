// Recursive doubling: in round k, each rank swaps its whole array with the one whose number differs
// in bit k, and both add. What a rank's sum covers doubles from round to round:
//
//      rank      0   1   2   3   4   5   6   7
//      round 0   0<->1   2<->3   4<->5   6<->7       sums of 2
//      round 1   0<----->2       4<----->6           sums of 4   (1 and 3, 5 and 7 alike)
//      round 2   0<------------->4                   sums of 8   (1 and 5, 2 and 6, ...)
//
// Two partners compute a + b and b + a, which are the same bits. So by induction all ranks whose
// sums cover the same ranks hold the same bits.
//
// Fewest rounds of all, most bytes: for short messages. For n bytes and N = 2^k (other worlds fold,
// see power_of_two.h, with the P of there in place of N and the cost of folding on top):
//
//   rounds   log2 N
//   bytes    n log2 N per rank and direction
//   time     log2 N (alpha + n beta + n gamma)
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RECURSIVE_DOUBLING_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RECURSIVE_DOUBLING_H_

#include "dist/collectives/plan.h"

namespace ringtail {

Plan RecursiveDoublingAllreduce(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RECURSIVE_DOUBLING_H_
