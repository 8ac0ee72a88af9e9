// All-to-all: every rank has a block for every other one, and each gets its own.
//
//      rank 0 sends  [00][01][02]        gets  [00][10][20]      block `rs` goes from rank r to s
//      rank 1        [10][11][12]              [01][11][21]
//      rank 2        [20][21][22]              [02][12][22]
//
// The array has both sides one after the other, 2 N blocks: what this rank sends, by receiver, and
// then what it gets, by sender. Its own block is not moved. All messages are under way at once, since
// none waits for another: the s-th that rank r sends goes to r + s, and that which it waits for comes
// from r - s, so that every link carries one block each way at a time.
//
//   rounds   1
//   bytes    (N - 1) / N of one side, per rank and direction
//   time     alpha + (N - 1) block beta
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_ALL_TO_ALL_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_ALL_TO_ALL_H_

#include "dist/collectives/plan.h"

namespace ringtail {

// For an array of 2 world * block elements.
Plan AllToAll(int rank, int world, int64_t block);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_ALL_TO_ALL_H_
