// NetworkFacts: what joins the ranks of a job, and what they compute with: the probed links
// (dist/collectives/link_model.h), hosts, ranks and cores.
//
//   host 0  [ rank 0 | rank 1 ]--within_host      cores_per_host divided evenly among the ranks
//              |  between_hosts                   sending: what messages cost them
//   host 1  [ rank 2 | rank 3 ]
//
// Thread-safety: a value.
#ifndef RINGTAIL_DIST_PLANNER_NETWORK_FACTS_H_
#define RINGTAIL_DIST_PLANNER_NETWORK_FACTS_H_

#include <algorithm>
#include <cstdint>

#include "dist/collectives/link_model.h"
#include "dist/collectives/topology.h"
#include "dist/planner/closed_forms.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

// Where nothing was probed. bench_allreduce over gRPC at 1 Gbit/s (Zen 5, network namespaces): README.md.
inline constexpr SendingCost kTypicalSending{.per_byte = 1.24e-9, .per_message = 1.3e-4};

struct NetworkFacts {
  NetworkModel links;
  int hosts = 1, ranks_per_host = 1;
  double cores_per_host = 1;
  // Per byte: adding included; bench_allreduce's "CPU s/GB" of two ranks and a ring.
  SendingCost sending;

  // `facts` must be checked (facts_file.h).
  static NetworkFacts Of(const PlannerFacts& facts);
  // Of a world whose links were probed (dist/probe.h). `cores_per_host`: as in `facts` (cores).
  static NetworkFacts Probed(const NetworkModel& links, int hosts, int ranks_per_host,
                             double cores_per_host);

  // What Of reads.
  void CopyTo(ClusterFacts* cluster) const;

  double cores_per_rank() const { return cores_per_host / ranks_per_host; }
  // The most hosts whose ranks have an image each in a step of so many.
  int HostsWithImages(int64_t global_batch) const {
    return static_cast<int>(std::clamp<int64_t>(global_batch / ranks_per_host, 1, hosts));
  }
  Topology TopologyOf(int hosts_used) const {
    return Topology::Blocks(hosts_used * ranks_per_host, ranks_per_host);
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_NETWORK_FACTS_H_
