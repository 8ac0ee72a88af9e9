// How a rank of bench_allreduce comes into its world.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/collectives/topology.h"
#include "dist/transport/transport.h"

namespace ringtail {

struct RankWorld {
  Topology topology;
  std::unique_ptr<Transport> transport;
};

// True if this process is one rank of several by its environment.
bool IsRank();
StatusOr<RankWorld> JoinRanks();
std::vector<std::string> RankEnvironment(int rank, int world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_RANK_WORLD_H_
