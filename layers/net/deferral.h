// Deferral: which blobs of a net are written, kept, written again or replaced by a map of another
// blob. Pure decisions about each node from what all nodes need (NodeNeeds); layers/fusion.h has
// the terms, layers/net/net_memory.h the lifetimes that follow.
// Thread-safety: immutable. Cost: O(nodes) per question, once per net.
#ifndef RINGTAIL_LAYERS_NET_DEFERRAL_H_
#define RINGTAIL_LAYERS_NET_DEFERRAL_H_

#include <span>
#include <vector>

#include "layers/net/net_memory.h"

namespace ringtail {

inline constexpr int kNoNode = -1;

class Deferral {
 public:
  // `nodes` must outlive it.
  Deferral(std::span<const NodeNeeds> nodes, const NetMemoryOptions& options);

  // The nodes that read dst of node i, first to last.
  std::span<const int> Consumers(int i) const { return consumers_[i]; }
  // How often dst of node i is an input: a consumer may read it twice.
  int Uses(int i) const { return uses_[i]; }

  bool Learns(int i) const { return options_.training && i >= 0 && nodes_[i].learns; }
  bool ReadsSrcBackward(int i) const { return Learns(i) && nodes_[i].plan.backward_needs_src; }

  // Whether dst of node i is dropped after forward and recomputed in backward.
  bool IsDropped(int i) const;
  // The node that may get src[0] of node i and a map in place of dst; kNoNode: none.
  int DeferredConsumer(int i) const;
  // Whether that node does get it, in its Forward, in its Backward.
  bool IsDeferredForward(int i) const;
  bool IsDeferredBackward(int i) const;
  // Whether the only consumer of node i leaves its diff_src to this node, as a map.
  bool TakesMap(int i) const { return Learns(i) && nodes_[i].plan.fusion.backward_takes_map; }
  // In parts of so many pixels that consumer takes the gradient sums of node i; 0: it does not.
  int64_t GradientSumsPixels(int i) const;

 private:
  std::span<const NodeNeeds> nodes_;
  NetMemoryOptions options_;
  std::vector<std::vector<int>> consumers_;
  std::vector<int> uses_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_DEFERRAL_H_
