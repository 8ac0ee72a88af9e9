// Single reducer: every rank sends its array to rank 0, which adds them up and sends the sum back.
// The baseline: what a lone parameter server does.
//
//      1   2   3              1   2   3
//       \  |  /     add        ^  ^  ^      copy
//        v v v               \ | /
//          0                     0
//
// Rank 0 adds in the order of ranks, whichever arrives first: the sum is ((a0 + a1) + a2) + ...
// Every byte of the world passes through its link:
//
//   rounds   2
//   bytes    (N - 1) n each way at rank 0; n each way elsewhere
//   time     2 alpha + 2 (N - 1) n beta + (N - 1) n gamma: grows with the world
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_SINGLE_REDUCER_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_SINGLE_REDUCER_H_

#include "dist/collectives/plan.h"

namespace ringtail {

Plan SingleReducerAllreduce(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_SINGLE_REDUCER_H_
