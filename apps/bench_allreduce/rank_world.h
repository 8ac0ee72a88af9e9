// How a rank of bench_allreduce finds its world (dist/membership/join.h).
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/collectives/topology.h"
#include "dist/membership/identity/rank_identity.h"
#include "dist/membership/join.h"
#include "dist/membership/security/security.h"

namespace ringtail {

struct RankWorldOptions {
  std::string transport = "auto";  // "grpc": also between ranks of one host
  std::optional<std::string> token_file;
  SecurityOptions security;
  FingerprintFields measured;  // what must be the same on all ranks
};

struct RankWorld {
  JoinedWorld joined;
  Topology topology;  // which ranks really share a host, whatever the transport
};

StatusOr<RankWorld> JoinRanks(const RankIdentity& identity, const RankWorldOptions& options);

// The environment of each rank of a world on this machine, as ringtail_launch sets it.
StatusOr<std::function<std::vector<std::string>(int rank)>> LocalRanksEnvironment(int world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_
