// Probe: measures the network that a world has, for the choice of algorithms (NetworkModel).
//
//   all ranks of each host, then one rank of each host:
//
//       0 ---> 1        every rank sends to the next and receives from the one before, all at the
//       ^      |        same time, as in a round of an allreduce. A link is measured in both
//       |      v        directions at once, and with the load that all ranks together are to the
//       3 <--- 2        processors that carry the bytes.
//
//   alpha   eight rounds of 4 bytes, each waiting for the one before: an eighth
//   beta    one round of 1280 KiB less one of 256 KiB, per byte: latency, and the burst that a
//           traffic shaper lets through, are in both
//   gamma   adding 512 KiB to as many that lie in the cache, as the executor does
//
// A time is that of the slowest rank: who starts late finds its message waiting, and who starts
// early waits for it. Of several repetitions the shortest counts, because noise only adds. Every
// rank is told the times of all and computes from them, so all come to the same bits.
//
// Cost: independent of the world's size but for barriers (log2 N messages each) and one allgather
// (N - 1 messages). On one host some 10 to 50 ms, at 1 Gbit/s 70 ms, at 100 Mbit/s 0.6 s. The
// caller keeps the result: it is good for the whole run.
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

// All ranks call it, once in the life of a transport: it uses up Channel::kProbe. Where the world
// has no pair of ranks on one host, or no second host, the other kind of links stands for both; a
// world of one has only gamma. Errors: as Executor's.
StatusOr<NetworkModel> ProbeNetwork(Transport* transport, const Topology& topology,
                                    const ExecutorOptions& executor = {});

// "latency 85 us, 1.2 GB/s each way, adding 9.1 GB/s"
std::string DescribeLink(const LinkModel& link);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PROBE_H_
