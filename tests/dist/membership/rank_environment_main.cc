// Says which rank it is, for tests under real schedulers:
//
//   dist_rank_environment_main
//   rank 1 of 4, 0 of 1 on this host, rank 0 at n1:20016 (Slurm)
#include <cstdio>

#include "dist/membership/identity/rank_environment.h"

int main() {
  const auto identity = ringtail::DetectRank({}, ringtail::ProcessEnvironment);
  if (!identity.ok()) {
    std::fprintf(stderr, "%s\n", identity.status().message().c_str());
    return 2;
  }
  std::printf("rank %d of %d, %d of %d on this host, rank 0 at %s:%d (%s)\n", identity->rank,
              identity->world_size, identity->local_rank, identity->local_world_size,
              identity->master_address.c_str(), identity->master_port, identity->source.c_str());
  return 0;
}
