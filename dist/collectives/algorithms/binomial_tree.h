// Binomial tree: the number of ranks that still hold a part of the sum halves from round to round.
// Shown for root 0; for another root, ranks count from there: (rank - root) mod N.
//
//      round 0    1 -> 0    3 -> 2    5 -> 4    7 -> 6          as a tree:      0
//      round 1    2 -> 0    6 -> 4                                            / | `-.
//      round 2    4 -> 0                                                     1  2    4
//                                                                               |    | `.
//   In round k, a rank whose lowest k bits are 0 and whose bit k                3    5   6
//   is 1 sends to the rank without that bit, and has finished.                           |
//                                                                                        7
// Reduce sums up at the root, Broadcast is its mirror image (Backwards in plan.h), Allreduce is the
// first and then the second. lg = log2 N rounded up; for n bytes:
//
//              rounds at the root   bytes at the root         time at most (N = 2^k: exactly)
//   Reduce     lg                   lg n received             lg (alpha + n beta + n gamma)
//   Broadcast  lg                   lg n sent                 lg (alpha + n beta)
//   Allreduce  2 lg                 lg n each way             their sum
//
// Broadcast has the fewest rounds possible. Allreduce is seldom the best: recursive doubling has
// half its rounds. It is what a hierarchy uses within a host.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BINOMIAL_TREE_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BINOMIAL_TREE_H_

#include "dist/collectives/plan.h"

namespace ringtail {

// Afterwards the root holds the sums; the other ranks hold parts of sums.
Plan BinomialReduce(int rank, int world, int64_t count, int root);
// Afterwards every rank holds what the root holds.
Plan BinomialBroadcast(int rank, int world, int64_t count, int root);
Plan BinomialTreeAllreduce(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_BINOMIAL_TREE_H_
