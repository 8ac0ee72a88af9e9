#include "apps/bench_allreduce/rank_world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/launch/job.h"
#include "dist/membership/host_identity.h"
#include "dist/membership/job_token.h"
#include "dist/membership/rank_environment.h"

namespace ringtail {
namespace {

constexpr char kHostField[] = "host";

// Hosts in the order of their first ranks.
Topology SharedHosts(const std::vector<JoinedRank>& ranks) {
  std::vector<std::string> hosts;
  Topology topology;
  for (const JoinedRank& rank : ranks) {
    const auto field = std::ranges::find(rank.about, kHostField, &FingerprintField::name);
    const std::string key = field == rank.about.end() ? rank.host_name : field->value;
    const auto known = std::ranges::find(hosts, key);
    topology.host_of_rank.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(key);
  }
  return topology;
}

}  // namespace

StatusOr<RankWorld> JoinRanks(const RankIdentity& identity, const RankWorldOptions& options) {
  JoinOptions join{.identity = identity,
                   .security = options.security,
                   .fingerprint = options.measured,
                   .about = {{kHostField, HostKey()}}};
  RT_ASSIGN_OR_RETURN(join.token, ReadJobToken(options.token_file, ProcessEnvironment));
  // Ranks of different hosts share no memory.
  if (options.transport == "grpc")
    join.host_key = fmt::format("{} rank {}", HostKey(), identity.rank);
  RT_ASSIGN_OR_RETURN(JoinedWorld joined, JoinWorld(join));
  Topology topology = SharedHosts(joined.ranks);
  if (options.transport == "shared_memory" && topology.hosts() > 1) {
    return InvalidArgument(fmt::format(
        "--transport shared_memory is for ranks of one host, but there are {}", topology.hosts()));
  }
  return RankWorld{std::move(joined), std::move(topology)};
}

StatusOr<std::function<std::vector<std::string>(int rank)>> LocalRanksEnvironment(int world) {
  Job job{.local_world = world, .world = world, .master_address = "127.0.0.1"};
  RT_ASSIGN_OR_RETURN(job.master_port, FindFreePort());
  RT_ASSIGN_OR_RETURN(job.token, NewToken());
  std::vector<std::string> own;
  for (char** variable = environ; *variable != nullptr; ++variable) own.emplace_back(*variable);
  return std::function(
      [job, own](int rank) { return EnvironmentOfRank(job, rank, /*threads=*/1, own); });
}

}  // namespace ringtail
