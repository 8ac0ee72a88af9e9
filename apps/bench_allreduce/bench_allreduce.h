// The benchmark of bench_allreduce: runs the ranks of each world and reports what they measure.
//
//   --transport in_process   the ranks are threads of this process
//   started by a launcher    this process is one rank; rank 0 reports. Always so with MPI (mpirun)
//   otherwise                this process launches the ranks of each world (apps/launch/supervisor.h)
//                            and reports the results of rank 0
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_H_

#include <optional>
#include <string>
#include <vector>

#include "apps/bench_allreduce/measure_world.h"
#include "apps/bench_allreduce/timing_report.h"
#include "core/status.h"
#include "dist/dist.pb.h"
#include "dist/membership/identity/rank_identity.h"
#include "dist/membership/security/security.h"

namespace ringtail {

struct AllreduceBenchmarkOptions {
  std::vector<int> worlds = {2};
  RankIdentity identity;  // a world of one unless a launcher started this process
  // As dist.transport and dist.shared_memory; no transport: ranks are threads of this process.
  std::optional<DistConfig::Transport> transport = DistConfig::GRPC;
  bool shared_memory = true;
  SecurityOptions security;
  std::optional<std::string> token_file;
  MeasureOptions measure;
  ReportStyle style = ReportStyle::kTable;
};

// Reports on standard output. Returns the exit code: that of the first rank that failed, after the
// launching process has printed why.
StatusOr<int> RunAllreduceBenchmark(const AllreduceBenchmarkOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_BENCH_ALLREDUCE_H_
