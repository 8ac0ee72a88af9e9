// bench_allreduce: the time of an allreduce, measured or by the cost model (apps/bench_allreduce/).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "apps/bench_allreduce/bench_allreduce.h"
#include "apps/bench_allreduce/bench_allreduce_flags.h"
#include "apps/bench_allreduce/model_table.h"
#include "apps/bench_program.h"
#include "apps/launch/own_verbs.h"

namespace ringtail {
namespace {

StatusOr<int> Run(const AllreduceFlags& flags) {
  if (!flags.model) {
    RT_ASSIGN_OR_RETURN(const AllreduceBenchmarkOptions options, flags.Benchmark());
    return RunAllreduceBenchmark(options);
  }
  RT_ASSIGN_OR_RETURN(const ModelTableOptions options, flags.CostTable());
  std::fputs((flags.as_json ? ModelJson(options) : ModelTable(options)).c_str(), stdout);
  return kExitSuccess;
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) {
  if (const auto exit_code = ringtail::RunOwnVerb(argc, argv)) return *exit_code;
  ringtail::AllreduceFlags flags;
  CLI::App app("Measures allreduce: the sum of an array over all ranks of a world.");
  ringtail::AddAllreduceFlags(&app, &flags);
  return ringtail::RunBenchProgram(
      "bench_allreduce", &app, argc, argv, [&] { return ringtail::Run(flags); },
      ringtail::ExitCodeOfWorld);
}
