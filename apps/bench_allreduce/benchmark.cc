#include "apps/bench_allreduce/benchmark.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "apps/bench_allreduce/allreduce_timing.h"
#include "apps/bench_allreduce/rank_world.h"
#include "apps/bench_allreduce/spawn_ranks.h"
#include "dist/probe.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

// Writes what is measured in the style that was asked for.
class Reporter {
 public:
  explicit Reporter(ReportStyle style) : style_(style) {}

  void OnNote(const std::string& note) {
    if (style_ == ReportStyle::kTable) Print(note + "\n");
    if (style_ == ReportStyle::kLines) Print(nlohmann::json{{"note", note}}.dump() + "\n");
  }
  void OnTiming(const AllreduceTiming& timing);
  // A line that a Reporter in style kLines has written.
  Status OnLine(const std::string& line);
  void Finish() {
    if (style_ == ReportStyle::kJson) Print(TimingsJson(timings_));
  }

 private:
  static void Print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  const ReportStyle style_;
  std::vector<AllreduceTiming> timings_;
};

void Reporter::OnTiming(const AllreduceTiming& timing) {
  if (style_ == ReportStyle::kLines) Print(ToJson(timing).dump() + "\n");
  if (style_ == ReportStyle::kTable) {
    if (timings_.empty()) Print(TimingHeader());
    Print(TimingLine(timing));
  }
  timings_.push_back(timing);
}

Status Reporter::OnLine(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("note") && json["note"].is_string()) {
    OnNote(json["note"]);
    return OkStatus();
  }
  RT_ASSIGN_OR_RETURN(const AllreduceTiming timing, TimingFromJson(line));
  OnTiming(timing);
  return OkStatus();
}

std::string DescribeWorld(const Topology& topology, const std::string& transport,
                          const NetworkModel& network) {
  const int hosts = topology.hosts();
  std::string text =
      fmt::format("{} {} on {} {}, {}", topology.world(), topology.world() == 1 ? "rank" : "ranks",
                  hosts, hosts == 1 ? "host" : "hosts", transport);
  if (hosts < topology.world()) text += "; on a host: " + DescribeLink(network.within_host);
  if (hosts > 1) text += "; between hosts: " + DescribeLink(network.between_hosts);
  return text;
}

Status MeasureAndReport(Transport* transport, const Topology& topology,
                        const BenchmarkOptions& options, Reporter* reporter) {
  const MeasureObserver observer = {
      .on_network =
          [&](const NetworkModel& network) {
            reporter->OnNote(DescribeWorld(topology, options.join.transport, network));
          },
      .on_timing = [&](const AllreduceTiming& timing) { reporter->OnTiming(timing); }};
  return MeasureWorld(transport, topology, options.measure, observer);
}

Status RunThreads(int world, BenchmarkOptions options, Reporter* reporter) {
  options.measure.ranks_in_process = world;
  const auto transports = MakeInProcessWorld(world);
  std::vector<Status> statuses(world);
  {
    std::vector<std::jthread> threads;
    threads.reserve(world);
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        statuses[rank] = MeasureAndReport(transports[rank].get(), Topology::Blocks(world, world),
                                          options, reporter);
      });
    }
  }
  for (const Status& status : statuses) RT_RETURN_IF_ERROR(status);
  return OkStatus();
}

template <typename T>
std::string Joined(const std::vector<T>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

Status RunProcesses(int world, const BenchmarkOptions& options, Reporter* reporter) {
  RT_ASSIGN_OR_RETURN(auto environment, LocalRanksEnvironment(world));
  const SpawnOptions spawn = {
      .world = world,
      .arguments = {"--operation", std::string(OperationName(options.measure.operation)),
                    "--algorithm", Joined(options.measure.algorithms), "--bytes",
                    Joined(options.measure.bytes), "--seconds",
                    fmt::format("{}", options.measure.seconds), "--link-gbit",
                    fmt::format("{}", options.measure.link_gbit_per_s), "--transport",
                    options.join.transport, "--started-by", fmt::format("{}", getpid())},
      .environment = std::move(environment)};
  return RunRanks(spawn, [&](const std::string& line) { return reporter->OnLine(line); })
      .Annotate(fmt::format("{} ranks", world));
}

// One rank of those that a launcher, or RunProcesses, has started.
Status RunRank(BenchmarkOptions options, Reporter* reporter) {
  options.join.measured = {{"--operation", std::string(OperationName(options.measure.operation))},
                           {"--algorithm", Joined(options.measure.algorithms)},
                           {"--bytes", Joined(options.measure.bytes)},
                           {"--seconds", fmt::format("{}", options.measure.seconds)},
                           {"--transport", options.join.transport}};
  RT_ASSIGN_OR_RETURN(const RankWorld world, JoinRanks(options.identity, options.join));
  RT_RETURN_IF_ERROR(
      MeasureAndReport(world.joined.transport.get(), world.topology, options, reporter));
  if (world.joined.rank == 0) reporter->Finish();
  return OkStatus();
}

}  // namespace

Status RunBenchmark(const BenchmarkOptions& options) {
  Reporter reporter(options.style);
  if (options.identity.world_size > 1) return RunRank(options, &reporter);
  for (const int world : options.worlds) {
    RT_RETURN_IF_ERROR(options.join.transport == "in_process"
                           ? RunThreads(world, options, &reporter)
                           : RunProcesses(world, options, &reporter));
  }
  reporter.Finish();
  return OkStatus();
}

}  // namespace ringtail
