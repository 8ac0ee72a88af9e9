// Double binary tree: two trees, each of which reduces one half of the array and then distributes
// it. (Sanders, Speck & Traeff 2009; also in NCCL.)
//
// In a binary tree, the leaves send but never receive while adding up: half of the links idle. So a
// second tree takes the inner nodes of the first as its leaves:
//
//      N = 8     tree 0: lower half          tree 1: upper half (rank 7 - r stands where r does)
//
//                   0                                         7
//                    `------.                          .-----'
//                           4                         3
//                       .--' '--.                 .--' '--.
//                      2         6               1         5
//                    .' '.     .' '.           .' '.     .' '.
//                   1     3   5     7         0     2   4     6
//
// Odd worlds turn tree 1 by one rank instead: rank r stands where r - 1 does in tree 0. Either way
// no rank has more than two children in both trees together.
//
// Each half is cut into segments that follow each other up the tree like trains. The timetable has
// slots; in each slot a rank sends at most one segment and receives at most one. A rank of tree 0
// gets a segment from its left child in one slot and from its right child in the next, so each link
// (child, parent) is used in every other slot: even or odd, its colour. Colours are right if
//
//      the links into a rank differ, and the (two) links out of a rank differ.
//
// Every link has at most one such rival at either end; rivals form paths and rings of even length
// (the ends alternate), which two colours always satisfy.
//
// Segment j uses a link in slot first + 2 j, where `first` has the link's colour and comes after
// the slots in which the same segment enters the child. Both ends of a message agree on its slot,
// which is why there is no deadlock: the message of the earliest slot can always go. Distribution
// is the reduction backwards. With k segments in each half and lg = log2 N rounded up:
//
//   rounds   at most 4 (lg + k - 1)
//   bytes    at most 2 n per rank and direction
//   time     at most 4 (lg + k - 1) (alpha + n / (2 k) beta) + half as often n / (2 k) gamma:
//            towards 2 n beta + n gamma for many segments, with a latency that grows as log2 N
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_DOUBLE_BINARY_TREE_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_DOUBLE_BINARY_TREE_H_

#include "dist/collectives/plan.h"

namespace ringtail {

// 256 KiB of float32: long against the latency of a wire, short against a bucket of gradients.
inline constexpr int64_t kTreeSegmentElements = 64 * 1024;

// Segments of at most `segment_elements`. Costs O(world) beside the steps of the plan.
Plan DoubleBinaryTreeAllreduce(int rank, int world, int64_t count,
                               int64_t segment_elements = kTreeSegmentElements);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_DOUBLE_BINARY_TREE_H_
