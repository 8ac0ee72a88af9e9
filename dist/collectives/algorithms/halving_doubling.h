// Halving-doubling: a reduce-scatter by recursive halving, an allgather by recursive doubling.
// (Rabenseifner 2004; Thakur, Rabenseifner & Gropp 2005; the nearest partner first, as in Gloo.)
//
// In round k, a rank and its partner (whose number differs in bit k) work on the same range. Each
// gives away one half of it and continues with the other: the one whose bit is 0 with the lower
// half.
//
//                  rank 0      rank 1      rank 2      rank 3
//      before      [ABCD]      [ABCD]      [ABCD]      [ABCD]
//      round 0     [AB]  <---->  [CD]      [AB]  <---->  [CD]      0 and 1 share, 2 and 3 share
//      round 1     [A]           [C]        [B]            [D]     0 and 2 share AB, 1 and 3 CD
//
// After log2 N rounds every rank holds the sum of 1/N of the array. The same rounds backwards give
// every rank everything (Backwards in plan.h). The largest messages go to the nearest ranks, which
// often live on the same host.
//
// As few bytes as a ring in far fewer rounds. For n bytes and N = 2^k (other worlds fold, see
// power_of_two.h, with the P of there in place of N and the cost of folding on top):
//
//   rounds   2 log2 N
//   bytes    2 (N - 1) / N n per rank and direction
//   time     2 log2 N alpha + 2 (N - 1) / N n beta + (N - 1) / N n gamma
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_

#include "dist/collectives/plan.h"

namespace ringtail {

Plan HalvingDoublingAllreduce(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_
