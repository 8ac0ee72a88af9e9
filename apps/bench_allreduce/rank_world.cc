#include "apps/bench_allreduce/rank_world.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dist/transport/grpc_transport.h"

namespace ringtail {

bool IsRank() { return std::getenv("WORLD_SIZE") != nullptr; }

std::vector<std::string> RankEnvironment(int rank, int world) {
  static int number = 0;
  if (rank == 0) ++number;
  const std::string folder =
      "/tmp/rt_bench_" + std::to_string(getpid()) + "_" + std::to_string(number);
  return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(world),
          "RT_FOLDER=" + folder};
}

StatusOr<RankWorld> JoinRanks() {
  const int rank = atoi(std::getenv("RANK")), world = atoi(std::getenv("WORLD_SIZE"));
  const char* master = std::getenv("MASTER_ADDR");
  const std::string folder = master ? "/tmp/rt_bench_" + std::string(std::getenv("RINGTAIL_TOKEN"))
                                    : std::getenv("RT_FOLDER");
  const std::string own = "10.77.0." + std::to_string(rank + 1);
  const char* host = master ? own.c_str() : nullptr;
  std::filesystem::create_directories(folder);
  RT_ASSIGN_OR_RETURN(auto listener,
                      GrpcListener::Listen(std::string(host ? host : "127.0.0.1") + ":0", {}));
  {
    std::ofstream(folder + "/tmp" + std::to_string(rank)) << listener->address();
    std::filesystem::rename(folder + "/tmp" + std::to_string(rank),
                            folder + "/" + std::to_string(rank));
  }
  std::vector<std::string> addresses(world);
  for (int r = 0; r < world; ++r) {
    while (!(std::ifstream(folder + "/" + std::to_string(r)) >> addresses[r])) usleep(1000);
  }
  RT_ASSIGN_OR_RETURN(
      auto transport,
      ConnectGrpc(std::move(listener), {.rank = rank, .generation = 1, .addresses = addresses}));
  return RankWorld{Topology::Blocks(world, host ? 1 : world), std::move(transport)};
}

}  // namespace ringtail
