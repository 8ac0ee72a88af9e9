#include "apps/bench_allreduce/bench_allreduce.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include "apps/exit_code.h"
#include "apps/launch/supervisor.h"
#include "apps/version.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/membership/identity/rank_environment.h"
#include "dist/membership/join.h"
#include "dist/membership/security/job_token.h"
#include "dist/probe.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

constexpr double kGraceSeconds = 5;  // for the other ranks to end after one has failed

std::string TransportName(const AllreduceBenchmarkOptions& options) {
  return options.transport ? DistConfig::Transport_Name(*options.transport) : "in_process";
}

std::string DescribeWorld(const Topology& topology, const AllreduceBenchmarkOptions& options,
                          const NetworkModel& network) {
  const bool share_hosts = topology.hosts() < topology.world();
  const bool share_memory = share_hosts && options.shared_memory && options.transport;
  std::string text = fmt::format("{} on {}, {}{}", Counted(topology.world(), "rank"),
                                 Counted(topology.hosts(), "host"), TransportName(options),
                                 share_memory ? " and shared memory" : "");
  if (share_hosts) text += "; on a host: " + DescribeLink(network.within_host);
  if (topology.hosts() > 1) text += "; between hosts: " + DescribeLink(network.between_hosts);
  if (network.cpu_seconds_per_byte > 0) {
    text +=
        fmt::format(", {:.3g} ns of a processor per byte and {:.3g} us per message",
                    network.cpu_seconds_per_byte * kGiga, network.cpu_seconds_per_message * kMega);
  }
  return text;
}

Status MeasureAndReport(Transport* transport, const Topology& topology,
                        const AllreduceBenchmarkOptions& options, TimingReport* report) {
  const MeasureObserver observer = {
      .on_network =
          [&](const NetworkModel& network) {
            report->AddNote(DescribeWorld(topology, options, network));
          },
      .on_timing = [&](const AllreduceTiming& timing) { report->AddTiming(timing); }};
  return MeasureWorld(transport, topology, options.measure, observer);
}

Status RunThreads(int world, AllreduceBenchmarkOptions options, TimingReport* report) {
  options.measure.ranks_in_process = world;
  const auto transports = MakeInProcessWorld(world);
  std::vector<Status> statuses(world);
  {
    std::vector<std::jthread> threads;
    threads.reserve(world);
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        statuses[rank] = MeasureAndReport(transports[rank].get(), Topology::Blocks(world, world),
                                          options, report);
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

// The flags that must agree on all ranks, with their values.
FingerprintFields MeasuredFlags(const AllreduceBenchmarkOptions& options) {
  return {{"--operation", std::string(OperationName(options.measure.operation))},
          {"--algorithm", Joined(options.measure.algorithms)},
          {"--bytes", Joined(options.measure.bytes)},
          {"--seconds", fmt::format("{}", options.measure.seconds)},
          {"--transport", TransportName(options)},
          {"--shared-memory", options.shared_memory ? "true" : "false"}};
}

// This program as a rank of a world that this process launches.
std::vector<std::string> RankCommand(const AllreduceBenchmarkOptions& options) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                      "--report-lines", "--link-gbit",
                                      fmt::format("{}", options.measure.link_gbit_per_s)};
  for (const auto& [flag, value] : MeasuredFlags(options)) {
    command.push_back(flag);
    command.push_back(value);
  }
  return command;
}

StatusOr<int> RunProcesses(int world, const AllreduceBenchmarkOptions& options,
                           TimingReport* report) {
  Status read;
  LaunchOptions launch = {.hosts = {{"localhost", world}},
                          .timeout_kill_s = kGraceSeconds,
                          .bind = false,
                          .program = RankCommand(options),
                          .own_name = "bench_allreduce",
                          .on_line_of_rank_0 = [&](std::string_view line) {
                            if (read.ok()) read = report->AddLine(line);
                          }};
  if (!ProcessEnvironment("OMP_NUM_THREADS")) launch.environment = {"OMP_NUM_THREADS=1"};
  const int exit_code = Supervisor(std::move(launch)).Run();
  if (exit_code != kExitSuccess) return exit_code;
  RT_RETURN_IF_ERROR(read);
  return kExitSuccess;
}

Status CheckWhoStartsRanks(const AllreduceBenchmarkOptions& options) {
  const bool launched = options.identity.world_size > 1;
  if (!options.transport && launched) {
    return InvalidArgument(fmt::format(
        "--transport in_process is for one process, but this is rank {} of {} ({}); omit the "
        "launcher and give --world",
        options.identity.rank, options.identity.world_size, options.identity.source));
  }
  if (options.transport == DistConfig::MPI && !launched) {
    return InvalidArgument(
        "--transport MPI needs at least 2 ranks, and mpirun to start them: "
        "mpirun -np 2 bench_allreduce --transport MPI");
  }
  return OkStatus();
}

// This process as a rank that a launcher, or RunProcesses, has started.
Status RunRank(const AllreduceBenchmarkOptions& options, TimingReport* report) {
  JoinOptions join{.identity = options.identity,
                   .security = options.security,
                   .fingerprint = MeasuredFlags(options),
                   .build = BuildVersionOfRank(),
                   .transport = *options.transport,
                   .shared_memory = options.shared_memory};
  RT_ASSIGN_OR_RETURN(join.token, ReadJobToken(options.token_file, ProcessEnvironment));
  RT_ASSIGN_OR_RETURN(const JoinedWorld world, JoinWorld(join));
  RT_RETURN_IF_ERROR(MeasureAndReport(world.transport.get(), world.topology, options, report));
  if (world.rank == 0) report->Finish();
  return OkStatus();
}

}  // namespace

StatusOr<int> RunAllreduceBenchmark(const AllreduceBenchmarkOptions& options) {
  RT_RETURN_IF_ERROR(CheckWhoStartsRanks(options));
  TimingReport report(options.style);
  if (options.identity.world_size > 1) {
    RT_RETURN_IF_ERROR(RunRank(options, &report));
    return kExitSuccess;
  }
  for (const int world : options.worlds) {
    if (!options.transport || world == 1) {
      RT_RETURN_IF_ERROR(RunThreads(world, options, &report));
      continue;
    }
    RT_ASSIGN_OR_RETURN(const int exit_code, RunProcesses(world, options, &report));
    if (exit_code != kExitSuccess) return exit_code;
  }
  report.Finish();
  return kExitSuccess;
}

}  // namespace ringtail
