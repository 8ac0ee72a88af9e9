// The work of every rank of bench_allreduce: measures the network, then each algorithm with each
// number of bytes.
//
// For each line: three runs to warm up, then runs until `seconds` have passed on rank 0 (at least
// 5, at most 10000). Each run begins with a barrier, and each sum is checked. Between runs the
// ranks only agree on whether to continue.
//
// Processor time is that of all threads of the process during AllReduce, so that I/O threads are
// included and the checks are not.
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
  // kAllgather: each rank has a part of the array, and every rank receives the whole array.
  // `algorithms` are then those of dist/collectives/allgather_choice.h, "auto" included.
  Operation operation = Operation::kAllreduce;
  std::vector<int64_t> bytes;
  double seconds = 1;          // per line
  double link_gbit_per_s = 0;  // of the links, for the ideal; 0: as probed
  int ranks_in_process = 1;    // ranks that share the processor time of this process
};

// Called on rank 0 as soon as a result is known.
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
