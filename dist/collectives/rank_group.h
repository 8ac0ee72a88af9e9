// RankGroup: some ranks of a world that work together as a world of their own: a pipeline stage,
// the ranks of a host, the holders of a shard.
//
//   world          0   1   2   3   4   5
//   group {4, 1}       1           0            member 0 is rank 4, member 1 is rank 1
//
// Algorithms plan for a world of size() ranks, numbered 0 to size() - 1; WithPeers (plan.h) makes
// that a plan of the world.
// Thread-safety: immutable.
#ifndef RINGTAIL_DIST_COLLECTIVES_RANK_GROUP_H_
#define RINGTAIL_DIST_COLLECTIVES_RANK_GROUP_H_

#include <optional>
#include <vector>

#include "dist/collectives/topology.h"

namespace ringtail {

class RankGroup {
 public:
  static RankGroup World(int world_size);  // all ranks, in their order
  // `ranks[i]` is member i. At least one; each at most once.
  explicit RankGroup(std::vector<int> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  std::optional<int> MemberOf(int rank) const;  // none if the rank is not in the group

  // Which members share a host, for a group of the world that `world` describes.
  Topology Within(const Topology& world) const;

 private:
  std::vector<int> ranks_;  // by member
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_RANK_GROUP_H_
