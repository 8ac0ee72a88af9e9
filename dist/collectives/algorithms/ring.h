// Ring: every rank sends to the next one and receives from the one before, all at the same time.
// (Patarasuk & Yuan 2009, bandwidth-optimal; known in deep learning through Baidu's 2017 article.)
// The exemplar for the other algorithms.
//
//      0 ---> 1             The array is cut into N parts, as even as possible: part c is owned by
//      ^      |             rank c. `count` need not be divisible by N, and parts may be empty.
//      |      v
//      3 <--- 2
//
// ReduceScatter: N - 1 rounds, after which the owner of each part holds its sum. The sum of part c
// starts at rank c + 1 and walks round the ring; every rank that it passes adds its own elements;
// it ends at rank c. Part 3 of 4, whose elements are a3 on rank 0, b3 on rank 1, ...:
//
//      round 0     0 --- a3 -----------> 1     becomes a3 + b3
//      round 1     1 --- a3+b3 --------> 2     becomes a3 + b3 + c3
//      round 2     2 --- a3+b3+c3 -----> 3     becomes a3 + b3 + c3 + d3: the sum is home
//
//   In round s, rank r sends part r - 1 - s, and adds part r - 2 - s (all modulo N).
//
// Allgather: N - 1 rounds more, in which each finished part walks round the ring and is copied.
//
//   In round s, rank r sends part r - s, and copies part r - 1 - s (all modulo N).
//
// Allreduce is the first and then the second. For n bytes:
//
//   rounds   2 (N - 1)
//   bytes    2 (N - 1) / N n per rank and direction: less than 2 n, however large the world
//   time     2 (N - 1) alpha + 2 (N - 1) / N n beta + (N - 1) / N n gamma
//
// Each half alone has half the rounds and half the bytes.
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RING_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RING_H_

#include "dist/collectives/plan.h"

namespace ringtail {

// Afterwards EvenPart(count, world, rank) holds the sum; the other elements hold parts of sums.
Plan RingReduceScatter(int rank, int world, int64_t count);
// Before, EvenPart(count, world, rank) is this rank's; afterwards every part is its owner's.
Plan RingAllgather(int rank, int world, int64_t count);
Plan RingAllreduce(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_RING_H_
