// bench_allreduce without its flags: how ranks come about, and where their results go.
//
//   in_process            threads of this process are the ranks
//   a launcher started us this process is one rank; rank 0 reports
//   else                  this process starts the ranks of each world and reports for them
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_BENCHMARK_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_BENCHMARK_H_

#include <string>
#include <vector>

#include "apps/bench_allreduce/measure_world.h"
#include "apps/bench_allreduce/rank_world.h"
#include "core/status.h"
#include "dist/membership/identity/rank_identity.h"

namespace ringtail {

enum class ReportStyle {
  kTable,  // for people, a line as soon as it is measured
  kJson,   // TimingsJson, at the end
  kLines,  // for the process that has started us: one JSON object per line, at once
};

struct BenchmarkOptions {
  std::vector<int> worlds = {2};
  RankIdentity identity;  // a world of one: no launcher has started us
  RankWorldOptions join;  // its transport may also be "in_process"
  MeasureOptions measure;
  ReportStyle style = ReportStyle::kTable;
};

// Reports on standard output.
Status RunBenchmark(const BenchmarkOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_BENCHMARK_H_
