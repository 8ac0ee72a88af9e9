// AllreduceTiming: one line of the results of bench_allreduce, as JSON and as a table row.
//
//   algbw   bytes of the array per second: the speed that a user sees
//   busbw   algbw * 2 (N - 1) / N (of an allgather, half of that): the load of the links if the
//           algorithm sends as little as possible. It can be compared with the speed of the links
//           for every N (the definition of nccl-tests).
//   ideal   the time of that load at the speed of the links. No allreduce is faster; short messages
//           take longer because of latency.
//
// Thread-safety: value types.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_ALLREDUCE_TIMING_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_ALLREDUCE_TIMING_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"

namespace ringtail {

enum class Operation { kAllreduce, kAllgather };
std::string_view OperationName(Operation operation);  // "allreduce"

struct AllreduceTiming {
  Operation operation = Operation::kAllreduce;
  std::string algorithm;  // as requested: "auto"
  std::string chosen;     // the choice for this number of bytes: "ring"
  int world = 0;
  int64_t bytes = 0;
  int64_t runs = 0;  // number of measured runs
  // Median and percentiles over runs of the slowest rank's time.
  double time_ms = 0, p10_ms = 0, p90_ms = 0, p99_ms = 0;
  double cpu_s_per_gb = 0;  // processor seconds of a rank per GB of the array, mean of the ranks
  double ideal_ms = 0;      // 0: unknown

  double AlgbwGbPerS() const;
  double BusbwGbPerS() const;
};

// Sets median, percentiles and runs of `timing` from the slowest rank's time in each run (not
// empty).
void SetPercentiles(std::span<const double> runs_ms, AllreduceTiming* timing);

// See above; 0 if the speed of the links is unknown (0) or the world has one rank. In a world of
// several hosts, the links between hosts count: 2 (H - 1) / H of the bytes for each. An allgather
// takes half of that.
double IdealMilliseconds(const Topology& topology, const NetworkModel& network, int64_t bytes,
                         Operation operation = Operation::kAllreduce);

nlohmann::ordered_json ToJson(const AllreduceTiming& timing);
// Inverse of ToJson; DataLoss for any other text.
StatusOr<AllreduceTiming> TimingFromJson(const std::string& text);

// {"results": [...]}; the keys of a single result are also beside "results".
std::string TimingsJson(std::span<const AllreduceTiming> timings);

std::string TimingHeader();
std::string TimingLine(const AllreduceTiming& timing);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_ALLREDUCE_TIMING_H_
