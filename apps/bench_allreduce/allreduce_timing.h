// AllreduceTiming: one line of what bench_allreduce measures, as JSON and for people.
//
//   algbw   bytes of the array per second: what a user sees
//   busbw   algbw * 2 (N - 1) / N (of an allgather, half of that): what the links carry if the algorithm sends as little as can be.
//           It can be compared with the speed of the links, whatever N (nccl-tests' definition).
//   ideal   the time in which the links carry that much. Nothing that ends with the sum on every
//           rank is faster; short messages take longer, because of latency.
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
  std::string algorithm;  // as asked for: "auto"
  std::string chosen;     // what that is for so many bytes: "ring"
  int world = 0;
  int64_t bytes = 0;
  int64_t runs = 0;  // that were measured
  // Of the slowest rank in each run: median and percentiles.
  double time_ms = 0, p10_ms = 0, p90_ms = 0, p99_ms = 0;
  double cpu_s_per_gb = 0;  // of a rank's processor time per GB of the array, mean of the ranks
  double ideal_ms = 0;      // 0: not known

  double AlgbwGbPerS() const;
  double BusbwGbPerS() const;
};

// Rows of `runs_ms` (slowest rank each; at least one) as percentiles into `timing`.
void SetPercentiles(std::span<const double> runs_ms, AllreduceTiming* timing);

// See above; 0 where the links' speed is not known (0) or the world has one rank. Where the world
// has several hosts it is their wires that count: 2 (H - 1) / H of the bytes for each.
// An allgather needs half of it.
double IdealMilliseconds(const Topology& topology, const NetworkModel& network, int64_t bytes,
                         Operation operation = Operation::kAllreduce);

nlohmann::ordered_json ToJson(const AllreduceTiming& timing);
// One that ToJson wrote; DataLoss for anything else.
StatusOr<AllreduceTiming> TimingFromJson(const std::string& text);

// {"results": [...]}; a single result's keys stand beside it as well.
std::string TimingsJson(std::span<const AllreduceTiming> timings);

std::string TimingHeader();
std::string TimingLine(const AllreduceTiming& timing);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_ALLREDUCE_TIMING_H_
