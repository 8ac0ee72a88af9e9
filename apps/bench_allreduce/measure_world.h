// What every rank of a world does in bench_allreduce: measures the network, then each algorithm with
// each number of bytes.
//
// One line: three runs to warm up, then runs until `seconds` have passed on rank 0 (at least 5, at
// most 10000). Each run begins with a barrier, and each sum is checked. Between runs the ranks only
// agree on whether to go on.
//
// Processor time is that of all threads of the process while its rank is inside AllReduce, so that
// I/O threads count and the checks do not.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_MEASURE_WORLD_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_MEASURE_WORLD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench_allreduce/allreduce_timing.h"
#include "core/status.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"
#include "dist/transport/transport.h"

namespace ringtail {

struct MeasureOptions {
  std::vector<std::string> algorithms;  // settings of the selector, "auto" included
  // kAllgather: of an array, of which each rank has its part, everything to every rank. Algorithms
  // are then those of dist/collectives/allgather_choice.h, "auto" included.
  Operation operation = Operation::kAllreduce;
  std::vector<int64_t> bytes;
  double seconds = 1;          // per line
  double link_gbit_per_s = 0;  // of the links that the ideal is for; 0: as the probe finds
  int ranks_in_process = 1;    // that share its processor time
};

// Called on rank 0 as soon as something is known.
struct MeasureObserver {
  std::function<void(const NetworkModel&)> on_network;
  std::function<void(const AllreduceTiming&)> on_timing;
};

// All ranks call it with the same options. An error ends the world on every rank; a wrong sum is
// DataLoss.
Status MeasureWorld(Transport* transport, const Topology& topology, const MeasureOptions& options,
                    const MeasureObserver& observer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_MEASURE_WORLD_H_
