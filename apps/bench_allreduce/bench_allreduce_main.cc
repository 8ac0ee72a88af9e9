// bench_allreduce: how long an allreduce takes, by measurement or by the cost model
// (apps/bench_allreduce/).
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "apps/bench_allreduce/benchmark.h"
#include "apps/bench_allreduce/byte_text.h"
#include "apps/bench_allreduce/model_table.h"
#include "apps/bench_allreduce/spawn_ranks.h"
#include "apps/exit_code.h"
#include "core/printable.h"
#include "core/stop_signal.h"
#include "core/terminate.h"
#include "dist/collectives/algorithms.h"
#include "dist/collectives/allgather_choice.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

constexpr int kMostRanks = 4096;

constexpr const char* kFooter = R"(
Examples
  bench_allreduce --world 2,4 --algorithm all --bytes 1KiB,1MiB,25MiB
  bench_allreduce --world 8,16 --operation allgather --algorithm ring,bruck --bytes 704B
  ringtail_launch --hosts a:2,b:2 -- bench_allreduce --insecure --algorithm auto,ring

What Baidu published in 2017: 1.2 GB of gradients over 1 GB/s take one reducer 1.2 s with 2 workers
and 10.8 s with 10; a ring takes 2(N-1)/N times the array, whatever N (column "busiest link"):
  bench_allreduce --model --world 2,10 --bytes 1.2GB --gb-per-s 1 --latency-us 0 \
    --algorithm single_reducer,ring

Columns: algbw = bytes / time; busbw = algbw * 2(N-1)/N, to compare with the speed of a link; times
are those of the slowest rank; ideal = what the link needs for 2(N-1)/N of the bytes; CPU s/GB =
processor seconds of one rank per GB of the array.)";

struct Flags {
  std::vector<int> worlds;
  std::vector<std::string> algorithms;
  std::vector<std::string> bytes = {"1KiB", "64KiB", "1MiB", "25MiB"};
  bool model = false, as_json = false;
  double latency_us = 50, gb_per_s = 1;
  int ranks_per_host = 1;
  int started_by = 0;
  RankFlags rank;
  BenchmarkOptions benchmark;
};

void AddRankFlags(CLI::App* app, Flags* flags) {
  const std::string group =
      "If each rank is started on its own (launchers and schedulers need only the last five)";
  app->add_option("--rank", flags->rank.rank, "This rank; --world is then how many there are")
      ->group(group);
  app->add_option("--local-rank", flags->rank.local_rank, "Its number on this host")->group(group);
  app->add_option("--master", flags->rank.master, "HOST[:PORT] of rank 0")->group(group);
  SecurityOptions* const security = &flags->benchmark.join.security;
  app->add_option(
         "--token-file", flags->benchmark.join.token_file,
         "The job's secret, readable by you alone (default: what is in RINGTAIL_TOKEN; else "
         "the file that RINGTAIL_TOKEN_FILE names)")
      ->group(group);
  app->add_flag("--insecure", security->insecure, "Plain TCP between hosts")->group(group);
  app->add_option("--tls-cert", security->tls_cert, "Certificate of this rank, PEM")->group(group);
  app->add_option("--tls-key", security->tls_key, "Its key")->group(group);
  app->add_option("--tls-ca", security->tls_ca, "The job's authority")->group(group);
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->footer(kFooter);
  app->add_option("--world", flags->worlds, "Numbers of ranks, such as 2,4 (default 2)")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostRanks));
  app->add_option("--operation", flags->benchmark.measure.operation,
                  "allreduce, or allgather: every rank ends with the parts of all")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Operation>{
          {"allreduce", Operation::kAllreduce}, {"allgather", Operation::kAllgather}}))
      ->default_str("allreduce");
  std::string names = "all, or some of auto";
  for (const AllreduceAlgorithm& known : AllreduceAlgorithms())
    names += fmt::format(", {}", known.name);
  app->add_option("--algorithm", flags->algorithms,
                  names + "; of an allgather: auto, ring, bruck (default auto; with --model all)")
      ->delimiter(',');
  app->add_option("--bytes", flags->bytes, "Sizes of the array, such as 1KiB,25MB,1.2GB")
      ->delimiter(',')
      ->capture_default_str();
  app->add_option("--seconds", flags->benchmark.measure.seconds,
                  "Time for each line; at least 5 runs")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_option("--transport", flags->benchmark.join.transport,
                  "auto: shared memory on a host, gRPC between hosts; in_process: threads as ranks")
      ->check(CLI::IsMember({"auto", "grpc", "shared_memory", "in_process"}))
      ->capture_default_str();
  app->add_option("--link-gbit", flags->benchmark.measure.link_gbit_per_s,
                  "Speed of a link for the ideal, Gbit/s; 0: as the probe finds")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app->add_flag("--json", flags->as_json, "Print the results as JSON, at the end");
  app->add_flag("--model", flags->model, "Measure nothing: print what the cost model says")
      ->group("Cost model");
  app->add_option("--latency-us", flags->latency_us, "Of a message")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group("Cost model");
  app->add_option("--gb-per-s", flags->gb_per_s, "Of a link, in both directions at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Cost model");
  app->add_option("--ranks-per-host", flags->ranks_per_host, "For hierarchical")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str()
      ->group("Cost model");
  AddRankFlags(app, flags);
  app->add_option("--started-by", flags->started_by, "")->group("");  // hidden: by RunProcesses
}

// "all" as the names that it stands for; errors name what is not known.
StatusOr<std::vector<std::string>> AlgorithmNames(const std::vector<std::string>& asked,
                                                  Operation operation) {
  std::vector<std::string> names;
  if (operation == Operation::kAllgather) {
    for (const std::string& name : asked) {
      if (name != "all") {
        RT_RETURN_IF_ERROR(FindAllgather(name).status());
        names.push_back(name);
        continue;
      }
      for (const AllgatherAlgorithm& known : AllgatherAlgorithms()) names.emplace_back(known.name);
    }
    return names;
  }
  for (const std::string& name : asked) {
    if (name == "all") {
      for (const AllreduceAlgorithm& known : AllreduceAlgorithms()) names.emplace_back(known.name);
      continue;
    }
    if (name != "auto") RT_RETURN_IF_ERROR(FindAllreduce(name).status());
    names.push_back(name);
  }
  return names;
}

Status Run(Flags* flags) {
  MeasureOptions& measure = flags->benchmark.measure;
  if (flags->algorithms.empty()) flags->algorithms = {flags->model ? "all" : "auto"};
  RT_ASSIGN_OR_RETURN(measure.algorithms, AlgorithmNames(flags->algorithms, measure.operation));
  if (flags->model && measure.operation != Operation::kAllreduce) {
    return InvalidArgument("--model knows allreduce alone; leave --operation away");
  }
  if (flags->model && std::ranges::count(measure.algorithms, "auto") > 0) {
    return InvalidArgument("--model has no row for auto, which is always one of the others");
  }
  for (const std::string& text : flags->bytes) {
    RT_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
    measure.bytes.push_back(bytes);
  }
  if (!flags->worlds.empty()) flags->benchmark.worlds = flags->worlds;
  if (!flags->model) {
    if (flags->rank.rank && flags->worlds.size() == 1) flags->rank.world_size = flags->worlds[0];
    RT_ASSIGN_OR_RETURN(flags->benchmark.identity, DetectRank(flags->rank, ProcessEnvironment));
    if (flags->started_by > 0) flags->benchmark.style = ReportStyle::kLines;
    if (flags->as_json) flags->benchmark.style = ReportStyle::kJson;
    return RunBenchmark(flags->benchmark);
  }
  const ModelTableOptions options = {
      .algorithms = measure.algorithms,
      .worlds = flags->benchmark.worlds,
      .bytes = measure.bytes,
      .links = {.latency_s = flags->latency_us * 1e-6, .seconds_per_byte = 1e-9 / flags->gb_per_s},
      .ranks_per_host = flags->ranks_per_host};
  const std::string text = flags->as_json ? ModelJson(options) : ModelTable(options);
  std::fputs(text.c_str(), stdout);
  return OkStatus();
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) {
  ringtail::ExplainTermination("bench_allreduce");
  ringtail::IgnoreBrokenPipes();
  ringtail::Flags flags;
  CLI::App app("Measures allreduce: the sum of an array over all ranks of a world.");
  ringtail::AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ringtail::kExitSuccess : ringtail::kExitUsage;
  }
  if (flags.started_by > 0) ringtail::EndWithParent(flags.started_by);
  const ringtail::Status status = ringtail::Run(&flags);
  if (!status.ok())
    std::fprintf(stderr, "bench_allreduce: %s\n", ringtail::Printable(status.message()).c_str());
  return ringtail::ExitCodeOfWorld(status);
}
