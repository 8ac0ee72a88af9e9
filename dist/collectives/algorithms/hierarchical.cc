#include "dist/collectives/algorithms/hierarchical.h"

#include <algorithm>
#include <vector>

#include "dist/collectives/algorithms/binomial_tree.h"

namespace ringtail {
namespace {

constexpr int kLeader = 0;  // among the ranks of its host

std::vector<int> Leaders(const Topology& topology) {
  std::vector<int> leaders;
  for (int rank = 0; rank < topology.world(); ++rank) {
    const int host = topology.host_of_rank[static_cast<size_t>(rank)];
    if (host == static_cast<int>(leaders.size())) leaders.push_back(rank);  // its first rank
  }
  return leaders;
}

}  // namespace

Plan HierarchicalAllreduce(int rank, const Topology& topology, int64_t count,
                           FlatAllreduce leaders_allreduce) {
  CheckPlanArguments(rank, topology.world(), count);
  const int host = topology.host_of_rank[static_cast<size_t>(rank)];
  const std::vector<int> neighbours = topology.RanksOf(host);
  const auto me = std::find(neighbours.begin(), neighbours.end(), rank) - neighbours.begin();
  const Plan within_host = WithPeers(
      BinomialReduce(static_cast<int>(me), static_cast<int>(neighbours.size()), count, kLeader),
      neighbours);

  Plan plan = within_host;
  if (me == kLeader) {
    plan.Append(WithPeers(leaders_allreduce(host, topology.hosts(), count), Leaders(topology)));
  }
  plan.Append(Backwards(within_host));
  return plan;
}

}  // namespace ringtail
