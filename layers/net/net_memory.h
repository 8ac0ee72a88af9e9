// NetMemory: which buffers a net needs, when each is alive, and which may be one and the same.
//
// Time runs over one step of L nodes: forward of node i at time i, backward of node i at 2L-1-i.
//
//   time      0 1 2 3 | 4 5 6 7    L = 4, training; each node is read by the next one
//   dst 0     [=============]      read by node 1 forward and, if it needs src, backward (time 6)
//   diff 0                  [=]    written by node 1's backward, read by node 0's
//   state 0   [===============]    from forward to backward
//   scratch   one call: forward and backward separately
//
// In place: a node may write dst over src[0] if it is src[0]'s only reader and nobody reads src[0]
// later; and diff_src[0] over diff_dst.
// Several readers: the gradient of a blob is the sum over its readers. The first backward to come
// writes it, the others add to it, or write to a temporary that the net adds up ("accumulate").
// Recomputed: a blob that its layer can write again (batch norm's: one cheap pass) is dropped after
// its last reader's forward, and written a second time, elsewhere, before the first backward that
// reads it. Where convolutions are followed by batch norm that saves up to half of what is kept.
// Deferred: where a blob is an affine map of its layer's src (batch norm's again), and its only
// reader can apply the map while it loads, the reader gets that src and the map instead, and nobody
// writes the blob:
//
//   the reader can in    dst                                     saves
//   both directions      never written                           a write, and recomputing
//   forward alone        written for the reader's backward       a write
//   backward alone       written by forward, dropped after it    recomputing
//
// Mapped gradients: the same for backward. Where the reader of a blob is a batch norm and its
// writer can map gradients while it loads them, the batch norm writes no gradient: the writer's
// diff_dst is the batch norm's, with the map, and the blob lives until the writer's backward.
// Sums: a reader that maps src for its backward can take the sums of the batch norm's backward, too,
// while it writes the batch norm's diff_dst; they live from one backward to the next. Between two
// such convolutions a batch norm touches no blob at all.
#ifndef RINGTAIL_LAYERS_NET_NET_MEMORY_H_
#define RINGTAIL_LAYERS_NET_NET_MEMORY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "layers/layer.h"

namespace ringtail {

inline constexpr int64_t kNoBuffer = -1;

// What a node needs, as the planner sees it.
struct NodeNeeds {
  std::vector<int> inputs;  // nodes, or -1: the images
  LayerPlan plan;
  bool learns = false;  // has a backward: parameters here or behind it
};

// Where a node's buffers lie: byte offsets into the net's block, or kNoBuffer.
struct NodePlacement {
  int64_t dst = kNoBuffer, diff_dst = kNoBuffer, state = kNoBuffer;
  int64_t forward_scratch = kNoBuffer, backward_scratch = kNoBuffer;
  int64_t recomputed_dst = kNoBuffer;
  int64_t dst_moments = kNoBuffer;    // from its Forward to that of the only reader
  int64_t diff_dst_sums = kNoBuffer;  // from the Backward of the only reader to its own
  // The reader's Forward, its Backward, gets src[0] and the map instead of dst.
  bool deferred_forward = false, deferred_backward = false;
  bool diff_dst_is_map = false;   // diff_dst is the reader's, and its DiffSrcMap is to be applied
  std::vector<int> recompute;     // nodes to recompute before this one's Backward
  std::vector<int64_t> diff_src;  // per input; what Backward writes
  // Per input: diff_src is a temporary, to be added to the blob's gradient.
  std::vector<bool> accumulate;
  bool add_to_diff_src = false;  // Backward adds to diff_src[0]
};

struct NetMemory {
  std::vector<NodePlacement> nodes;
  int64_t total_bytes = 0;
};

// `nodes` in topological order, the loss last. training: with backward.
// recompute: drop after forward what can be recomputed. defer: do not write what its reader maps.
NetMemory PlanNetMemory(std::span<const NodeNeeds> nodes, bool training, bool recompute = false,
                        bool defer = false);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_NET_MEMORY_H_
