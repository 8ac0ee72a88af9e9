// Hierarchical: the first rank of each host is its leader. Each host adds up at its leader, the
// leaders run an allreduce of their own over the wire, each leader tells its host.
//
//      host A: 0 1 2 3                 host B: 4 5 6 7
//
//      1,2,3 --> 0                     5,6,7 --> 4              binomial tree, within the host
//                0 <-----------------------------4              leaders' algorithm, over the wire
//      1,2,3 <-- 0                     5,6,7 <-- 4              the same tree backwards
//
// Only one rank of a host uses its wire, whose bytes then depend on the number of hosts, not of
// ranks; any layout will do, also uneven ones and ranks dealt out in turn. For m ranks on the
// largest host, H hosts and a ring of leaders:
//
//   rounds   2 lg m + 2 (H - 1) at a leader   (lg = log2 rounded up)
//   bytes    lg m n each way within a host, 2 (H - 1) / H n over the wire, at a leader
//   time     at most that of a binomial tree of m ranks with alpha and beta within a host, and that
//            of a ring of H with alpha and beta between hosts
#ifndef RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HIERARCHICAL_H_
#define RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HIERARCHICAL_H_

#include "dist/collectives/plan.h"
#include "dist/collectives/topology.h"

namespace ringtail {

// (rank, world, count) -> the rank's plan.
using FlatAllreduce = Plan (*)(int rank, int world, int64_t count);

Plan HierarchicalAllreduce(int rank, const Topology& topology, int64_t count,
                           FlatAllreduce leaders_allreduce);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ALGORITHMS_HIERARCHICAL_H_
