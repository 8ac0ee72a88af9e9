#include "dist/collectives/cost_table.h"

#include <algorithm>

#include "dist/collectives/algorithms.h"

namespace ringtail {

std::vector<CostRow> CostTable(std::span<const int> worlds, std::span<const int64_t> bytes,
                               const LinkModel& links, int ranks_per_host) {
  std::vector<CostRow> rows;
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (const int world : worlds) {
      const Topology topology = Topology::Blocks(world, ranks_per_host);
      if (!algorithm.Suits(topology)) continue;
      for (const int64_t n : bytes) {
        const int64_t count = (n + kElementBytes - 1) / kElementBytes;
        const PlanCost cost = CostOfPlans(AllPlans(algorithm, topology, count), links);
        const auto busiest = static_cast<double>(std::max(cost.sent_bytes, cost.received_bytes));
        rows.push_back({.algorithm = algorithm.name,
                        .world = world,
                        .bytes = n,
                        .cost = cost,
                        .busiest_link_seconds = busiest * links.seconds_per_byte});
      }
    }
  }
  return rows;
}

}  // namespace ringtail
