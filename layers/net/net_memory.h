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
// In place: a node may write dst over src[0] if it is src[0]'s only consumer and nothing reads
// src[0] later; and diff_src[0] over diff_dst.
// Several consumers: the gradient of a blob is the sum over its consumers. The first backward
// writes it, the others add to it, or write to a temporary that the net adds ("accumulate").
// Recomputed: a blob that its layer can write again (batch norm's: one cheap pass) is dropped after
// its last consumer's forward, and written a second time, elsewhere, before the first backward that
// reads it. Where convolutions are followed by batch norm that saves up to half of what is kept.
// Deferred blobs, mapped gradients, moments and sums (layers/fusion.h): a deferred blob is not
// written, and its src lives until the consumer has read it; a mapped gradient is not written, and
// the blob that it is a map of lives until the writer's backward; moments live from one forward to
// the next, sums from one backward to the next.
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
  bool learns = false;  // has a backward: it or a node upstream of it has parameters that train
};

// Where a node's buffers lie: byte offsets into the net's block, or kNoBuffer.
struct NodePlacement {
  int64_t dst = kNoBuffer, diff_dst = kNoBuffer, state = kNoBuffer;
  int64_t forward_scratch = kNoBuffer, backward_scratch = kNoBuffer;
  int64_t recomputed_dst = kNoBuffer;
  int64_t dst_moments = kNoBuffer;    // from its Forward to that of the only consumer
  int64_t diff_dst_sums = kNoBuffer;  // from the Backward of the only consumer to its own
  // The consumer gets src[0] and the map instead of dst, in its Forward, in its Backward.
  bool deferred_forward = false, deferred_backward = false;
  bool diff_dst_is_map = false;   // diff_dst is the consumer's, and its DiffSrcMap is to be applied
  std::vector<int> recompute;     // nodes to recompute before this one's Backward
  std::vector<int64_t> diff_src;  // per input; what Backward writes
  // Per input: diff_src is a temporary, to be added to the blob's gradient.
  std::vector<bool> accumulate;
  bool add_to_diff_src = false;  // Backward adds to diff_src[0]
};

struct NetMemory {
  std::vector<NodePlacement> nodes;
  int64_t total_bytes = 0;
  // Of these, what forward leaves for backward: what has to be there once more for each further
  // batch that is between the two. 0 without backward.
  int64_t kept_bytes = 0;
  // What a pass needs beside it, where they are apart.
  int64_t work_bytes() const { return total_bytes - kept_bytes; }
};

struct NetMemoryOptions {
  bool training = true;    // with backward
  bool recompute = false;  // drop after forward what can be recomputed
  bool defer = false;      // do not write what the consumer can map
  // What is kept from forward to backward comes first, and nothing else lies there: what follows is of
  // one pass alone, so that several nets whose passes take turns can share it.
  bool apart = false;
};

// `nodes` in topological order, the loss last.
NetMemory PlanNetMemory(std::span<const NodeNeeds> nodes, const NetMemoryOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_NET_MEMORY_H_
