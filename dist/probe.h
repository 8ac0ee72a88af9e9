// Probe: measures the network that a world has, for the choice of algorithms (NetworkModel).
//
//   all ranks of each host, then one rank of each host:
//
//       0 ---> 1        every rank sends to the next and receives from the previous one, all at
//       ^      |        the same time, as in a round of an allreduce. A link is measured in both
//       |      v        directions at once, under the load that all ranks together put on the
//       3 <--- 2        processors that carry the bytes.
//
//   alpha   eight rounds of 4 bytes, each waiting for the previous one: an eighth of their time
//   beta    one round of 1280 KiB minus one of 256 KiB, per byte: both contain the latency and the
//           burst that a traffic shaper lets through
//   gamma   adding 512 KiB to as many in the cache, as the executor does
//   cpu     processor time of all threads of a rank during the rounds of 1280 KiB, minus that during
//           those of 256 KiB, per byte; during the rounds of 4 bytes, per message. The mean of the ranks
//           that took part. Other work of the process counts as well: there is none while ranks join
//
// A time is that of the slowest rank: a rank that starts late finds its message waiting, and one
// that starts early waits for it. The shortest of several repetitions counts, because noise only
// adds. Every rank computes from the times of all ranks, so all get the same bits.
//
// Cost: independent of the world's size except for barriers (log2 N messages each) and one
// allgather (N - 1 messages). On one host some 10 to 50 ms, at 1 Gbit/s 70 ms, at 100 Mbit/s 0.6 s.
// The result is valid for the whole run: keep it.
//
// Hockney, "The communication challenge for MPP", 1994 (alpha and beta); exchanging with both
// neighbours at once is how HPC Challenge's rings measure links (Luszczek et al. 2005).
#ifndef RINGTAIL_DIST_PROBE_H_
#define RINGTAIL_DIST_PROBE_H_

#include <string>

#include "core/status.h"
#include "dist/collectives/executor.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"
#include "dist/transport/transport.h"

namespace ringtail {

// All ranks call it, once in the life of a transport: it uses kProbeChannel. Where the world
// has no pair of ranks on one host, or no second host, the other kind of links stands for both; a
// world of one has only gamma. Errors: as Executor's.
StatusOr<NetworkModel> ProbeNetwork(Transport* transport, const Topology& topology,
                                    const ExecutorOptions& executor = {});

// "latency 85 us, 1.2 GB/s each way, adding 9.1 GB/s"
std::string DescribeLink(const LinkModel& link);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PROBE_H_
