// The command line of bench_allreduce: its flags, and the benchmark or cost table that they ask
// for.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_FLAGS_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_FLAGS_H_

#include <string>
#include <vector>

#include "apps/bench_allreduce/bench_allreduce.h"
#include "apps/bench_allreduce/model_table.h"
#include "core/status.h"
#include "dist/membership/identity/rank_environment.h"

namespace CLI {
class App;
}

namespace ringtail {

struct AllreduceFlags {
  std::vector<int> worlds;              // empty: not given
  std::vector<std::string> algorithms;  // empty: not given
  std::vector<std::string> bytes = {"1KiB", "64KiB", "1MiB", "25MiB"};
  bool model = false, as_json = false;
  bool report_lines = false;  // this process is a rank of a world that bench_allreduce launched
  std::string transport = "GRPC";
  double latency_us = 50, gb_per_s = 1;
  int ranks_per_host = 1;
  RankFlags rank;
  // What the parser writes directly; Benchmark() adds the rest.
  AllreduceBenchmarkOptions benchmark;

  StatusOr<AllreduceBenchmarkOptions> Benchmark() const;  // without --model
  StatusOr<ModelTableOptions> CostTable() const;          // with --model
};

// `flags` must outlive the parsing.
void AddAllreduceFlags(CLI::App* app, AllreduceFlags* flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_FLAGS_H_
