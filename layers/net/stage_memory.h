// The memory of a stage: of a run of a net's nodes that another process computes, which gets one
// blob from the stage before and sends one to the next (layers/net/cut_points.h).
//
//   received -> [ node first ... node last ] -> to send        forward
//   to send  <- [ node first ... node last ] <- received       backward
//
// Planned as a whole net is (layers/net/net_memory.h), with the blob that is received as a node
// before the first one, and what sends as a node after the last one. Buffers of messages that are
// on their way are not among it.
// Thread-safety: a pure function. Cost: that of a plan, O(nodes^2).
#ifndef RINGTAIL_LAYERS_NET_STAGE_MEMORY_H_
#define RINGTAIL_LAYERS_NET_STAGE_MEMORY_H_

#include <cstdint>
#include <span>

#include "layers/net/net_memory.h"

namespace ringtail {

struct StageMemory {
  int64_t step_bytes = 0;  // activations, gradients, state and scratch of one batch under way
  int64_t kept_bytes = 0;  // of these, what is kept from its forward to its backward
  int64_t work_bytes = 0;  // what nets with several batches under way share beside that

  // With so many batches (micro-batches of a pipeline) between forward and backward, at least 1.
  int64_t BytesWith(int alive) const {
    return alive == 1 ? step_bytes : work_bytes + alive * kept_bytes;
  }
};

// Of the nodes first .. last of those that a net was planned from (Net::needs). The net may be cut
// before the first and after the last node, and neither cut parts a batch norm from a neighbour.
StageMemory PlanStageMemory(std::span<const NodeNeeds> nodes, int first, int last,
                            const NetMemoryOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_STAGE_MEMORY_H_
