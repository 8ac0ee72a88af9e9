#include "apps/bench_allreduce/bench_allreduce_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "apps/byte_text.h"
#include "apps/number_flags.h"
#include "apps/rank_flags.h"
#include "dist/collectives/algorithms.h"
#include "dist/collectives/allgather_choice.h"

namespace ringtail {
namespace {

constexpr int kMostRanks = 4096;
constexpr char kInProcess[] = "in_process";

constexpr const char* kFooter = R"(
Examples
  bench_allreduce --world 2,4 --algorithm all --bytes 1KiB,1MiB,25MiB
  bench_allreduce --world 8,16 --operation allgather --algorithm ring,bruck --bytes 704B
  ringtail_launch --hosts a:2,b:2 -- bench_allreduce --insecure --algorithm auto,ring
  mpirun -np 4 bench_allreduce --transport MPI --shared-memory false

What Baidu published in 2017: 1.2 GB of gradients over 1 GB/s take one reducer 1.2 s with 2 workers
and 10.8 s with 10; a ring takes 2(N-1)/N times the array, whatever N (column "busiest link"):
  bench_allreduce --model --world 2,10 --bytes 1.2GB --gb-per-s 1 --latency-us 0 \
    --algorithm single_reducer,ring

Columns: algbw = bytes / time; busbw = algbw * 2(N-1)/N, to compare with the speed of a link; times
are those of the slowest rank; ideal = time of the link for 2(N-1)/N of the bytes; CPU s/GB =
processor seconds of one rank per GB of the array.)";

std::vector<std::string> TransportNames() {
  std::vector<std::string> names;
  const auto* const transports = DistConfig::Transport_descriptor();
  for (int i = 0; i < transports->value_count(); ++i) names.push_back(transports->value(i)->name());
  names.emplace_back(kInProcess);
  return names;
}

void AddMeasureFlags(CLI::App* app, AllreduceFlags* flags) {
  MeasureOptions* const measure = &flags->benchmark.measure;
  app->add_option("--world", flags->worlds, "Numbers of ranks, such as 2,4 (default 2)")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostRanks));
  app->add_option("--operation", measure->operation,
                  "allreduce, or allgather: every rank receives the parts of all ranks")
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
  app->add_option("--seconds", measure->seconds, "Time for each line; at least 5 runs")
      ->check(NumberIn(CLI::Range(0.0, 3600.0)))
      ->capture_default_str();
  app->add_option(
         "--transport", flags->transport,
         "As dist.transport (MPI: start the ranks with mpirun); in_process: threads as ranks")
      ->check(CLI::IsMember(TransportNames()))
      ->capture_default_str();
  app->add_option(
         "--shared-memory", flags->benchmark.shared_memory,
         "As dist.shared_memory: whether ranks of one host share memory beside the transport")
      ->capture_default_str();
  app->add_option("--link-gbit", measure->link_gbit_per_s,
                  "Speed of a link for the ideal, Gbit/s; 0: as probed at the start")
      ->check(NumberIn(CLI::Range(0.0, 1e6)))
      ->capture_default_str();
  app->add_flag("--json", flags->as_json, "Print the results as JSON, at the end");
  app->add_flag("--report-lines", flags->report_lines)->group("");  // hidden: from RunProcesses
}

void AddModelFlags(CLI::App* app, AllreduceFlags* flags) {
  constexpr char kGroup[] = "Cost model";
  app->add_flag("--model", flags->model, "Print the times of the cost model without measuring")
      ->group(kGroup);
  app->add_option("--latency-us", flags->latency_us, "Latency of a message, microseconds")
      ->check(NumberIn(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group(kGroup);
  app->add_option("--gb-per-s", flags->gb_per_s, "Speed of a link, in both directions at once")
      ->check(NumberIn(CLI::PositiveNumber))
      ->capture_default_str()
      ->group(kGroup);
  app->add_option("--ranks-per-host", flags->ranks_per_host, "For hierarchical")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str()
      ->group(kGroup);
}

// `asked` with every "all" replaced by the names of `known`. `check` refuses other unknown names.
template <typename Algorithms, typename Check>
StatusOr<std::vector<std::string>> Expand(const std::vector<std::string>& asked,
                                          const Algorithms& known, const Check& check) {
  std::vector<std::string> names;
  for (const std::string& name : asked) {
    if (name == "all") {
      for (const auto& algorithm : known) names.emplace_back(algorithm.name);
      continue;
    }
    RT_RETURN_IF_ERROR(check(name));
    names.push_back(name);
  }
  return names;
}

StatusOr<std::vector<std::string>> AlgorithmNames(const std::vector<std::string>& asked,
                                                  Operation operation) {
  if (operation == Operation::kAllgather) {
    return Expand(asked, AllgatherAlgorithms(),
                  [](const std::string& name) { return FindAllgather(name).status(); });
  }
  return Expand(asked, AllreduceAlgorithms(), [](const std::string& name) {
    return name == "auto" ? OkStatus() : FindAllreduce(name).status();
  });
}

StatusOr<std::vector<int64_t>> ParseSizes(const std::vector<std::string>& texts) {
  std::vector<int64_t> sizes;
  for (const std::string& text : texts) {
    RT_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace

void AddAllreduceFlags(CLI::App* app, AllreduceFlags* flags) {
  app->footer(kFooter);
  AddMeasureFlags(app, flags);
  AddModelFlags(app, flags);
  AddRankFlags(app, "Ranks that are started one by one (--world: how many there are)",
               &flags->rank);
  AddSecurityFlags(app, "Ranks on several hosts", &flags->benchmark.security,
                   &flags->benchmark.token_file);
}

StatusOr<AllreduceBenchmarkOptions> AllreduceFlags::Benchmark() const {
  AllreduceBenchmarkOptions options = benchmark;
  const bool chosen = !algorithms.empty();
  RT_ASSIGN_OR_RETURN(options.measure.algorithms,
                      AlgorithmNames(chosen ? algorithms : std::vector<std::string>{"auto"},
                                     options.measure.operation));
  RT_ASSIGN_OR_RETURN(options.measure.bytes, ParseSizes(bytes));
  if (!worlds.empty()) options.worlds = worlds;
  DistConfig::Transport wire;
  if (DistConfig::Transport_Parse(transport, &wire)) {
    options.transport = wire;
  } else {
    options.transport.reset();
  }
  RankFlags own = rank;
  if (own.rank && worlds.size() == 1) own.world_size = worlds[0];
  RT_ASSIGN_OR_RETURN(options.identity, DetectRank(own, ProcessEnvironment));
  if (report_lines) options.style = ReportStyle::kLines;
  if (as_json) options.style = ReportStyle::kJson;
  return options;
}

StatusOr<ModelTableOptions> AllreduceFlags::CostTable() const {
  if (benchmark.measure.operation != Operation::kAllreduce) {
    return InvalidArgument("--model supports allreduce only; omit --operation");
  }
  if (std::ranges::count(algorithms, "auto") > 0) {
    return InvalidArgument("--model has no row for auto, which always is one of the others");
  }
  ModelTableOptions options = {
      .worlds = worlds.empty() ? benchmark.worlds : worlds,
      .links = {.latency_s = latency_us * 1e-6, .seconds_per_byte = 1e-9 / gb_per_s},
      .ranks_per_host = ranks_per_host};
  RT_ASSIGN_OR_RETURN(
      options.algorithms,
      AlgorithmNames(algorithms.empty() ? std::vector<std::string>{"all"} : algorithms,
                     Operation::kAllreduce));
  RT_ASSIGN_OR_RETURN(options.bytes, ParseSizes(bytes));
  return options;
}

}  // namespace ringtail
