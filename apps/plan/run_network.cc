#include "apps/plan/run_network.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "apps/plan/measure_facts.h"

namespace ringtail {

StatusOr<NetworkFacts> NetworkOf(const TrainingWorld& world) {
  const Topology& topology = world.topology();
  const int hosts = topology.hosts();
  const auto on_first = std::ssize(topology.RanksOf(0));
  for (int host = 1; host < hosts; ++host) {
    const auto on_this = std::ssize(topology.RanksOf(host));
    if (on_this == on_first) continue;
    return InvalidArgument(
        fmt::format("hosts with different numbers of ranks are not planned for: {} and {} (the "
                    "host of {}); give "
                    "each as many",
                    on_first, on_this, world.Describe(topology.RanksOf(host).front())));
  }
  const auto ranks_per_host = static_cast<int>(on_first);
  return NetworkFacts::Probed(world.network(), hosts, ranks_per_host,
                              CoresOfThisRank() * ranks_per_host);
}

int RanksHere(const TrainingWorld& world) {
  const std::vector<int>& hosts = world.topology().host_of_rank;
  return static_cast<int>(std::ranges::count(hosts, hosts[world.rank()]));
}

}  // namespace ringtail
