#include "apps/bench_allreduce/rank_world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "apps/launch/job.h"
#include "apps/version.h"
#include "dist/membership/identity/rank_environment.h"
#include "dist/membership/security/job_token.h"

namespace ringtail {
StatusOr<RankWorld> JoinRanks(const RankIdentity& identity, const RankWorldOptions& options) {
  JoinOptions join{.identity = identity,
                   .security = options.security,
                   .fingerprint = options.measured,
                   .build = BuildVersionOfRank(),
                   .shared_memory = options.transport != "grpc"};
  RT_ASSIGN_OR_RETURN(join.token, ReadJobToken(options.token_file, ProcessEnvironment));
  RT_ASSIGN_OR_RETURN(JoinedWorld joined, JoinWorld(join));
  if (options.transport == "shared_memory" && joined.topology.hosts() > 1) {
    return InvalidArgument(
        fmt::format("--transport shared_memory is for ranks of one host, but there are {}",
                    joined.topology.hosts()));
  }
  Topology topology = joined.topology;
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
