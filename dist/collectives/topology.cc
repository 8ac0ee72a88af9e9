#include "dist/collectives/topology.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

Topology Topology::Blocks(int world, int ranks_per_host) {
  RT_CHECK(world >= 0 && ranks_per_host > 0, "a host must have ranks");
  Topology topology;
  for (int rank = 0; rank < world; ++rank) topology.host_of_rank.push_back(rank / ranks_per_host);
  return topology;
}

int Topology::hosts() const {
  if (host_of_rank.empty()) return 0;
  return *std::max_element(host_of_rank.begin(), host_of_rank.end()) + 1;
}

std::vector<int> Topology::RanksOf(int host) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < world(); ++rank) {
    if (host_of_rank[static_cast<size_t>(rank)] == host) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace ringtail
