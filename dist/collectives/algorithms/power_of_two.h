// Folding: how an algorithm that needs a power of two of ranks runs in any world.
//
// P is the largest power of two in N, and N - P ranks are too many. Each of them pairs with a
// neighbour: the first 2 (N - P) ranks are pairs. The even one gives its array to the odd one,
// which stands for both among P ranks, and gives the result back. N = 6, P = 4:
//
//      ranks            0   1   2   3   4   5
//      fold             0-->1   2-->3   .   .      add
//      place among P        0       1   2   3      the algorithm itself
//      unfold           0<--1   2<--3   .   .      copy
//
// If N is not a power of two, it costs 2 rounds and n bytes each way more, at a rank of a pair.
// (Rabenseifner 2004; MPICH does the same.)
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_POWER_OF_TWO_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_POWER_OF_TWO_H_

#include "dist/collectives/plan.h"

namespace ringtail {

// (rank, world, count) -> the rank's plan, for worlds that are powers of two.
using PowerOfTwoAllreduce = Plan (*)(int rank, int world, int64_t count);

// The same allreduce for any world.
Plan FoldedAllreduce(int rank, int world, int64_t count, PowerOfTwoAllreduce allreduce);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_POWER_OF_TWO_H_
