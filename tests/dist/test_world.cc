#include "tests/dist/test_world.h"

#include <atomic>
#include <thread>
#include <utility>

#include "core/check.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/in_process.h"
#include "dist/transport/routed_transport.h"
#include "tests/dist/transport/mpi/loopback_mpi.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

void PrintTo(const WorldKind& kind, std::ostream* out) { *out << kind.name; }

World MakeGrpcWorld(const std::vector<std::string>& listen_at, const TransportOptions& options,
                    const std::vector<std::string>& hosts) {
  const int world_size = static_cast<int>(listen_at.size());
  std::vector<std::unique_ptr<TransportListener>> listeners;
  std::vector<std::string> addresses;
  for (const std::string& address : listen_at) {
    listeners.push_back(std::move(*ListenGrpc(address, options)));
    addresses.push_back(listeners.back()->address());
  }
  World world(world_size);
  OnEveryRank(world_size, [&](int rank) {
    world[rank] = std::move(*ConnectRouted(
        listeners[rank].get(),
        {.rank = rank, .generation = 1, .addresses = addresses, .memory_keys = hosts}));
  });
  return world;
}

World MakeTcpWorld(int world_size) {
  return MakeGrpcWorld(std::vector<std::string>(world_size, "127.0.0.1:0"), {});
}

World MakeUnixWorld(int world_size) {
  static const TempDir folder;
  static std::atomic<int> number = 0;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < world_size; ++rank) {
    addresses.push_back("unix:" + folder.path() + "/" + std::to_string(number++));
  }
  return MakeGrpcWorld(addresses, {.io_threads = 2});
}

// As between machines: addresses differ, so there are checksums and more credit.
World MakeNetworkWorld(int world_size) {
  std::vector<std::string> addresses;
  for (int rank = 0; rank < world_size; ++rank) {
    addresses.push_back("127.0.0." + std::to_string(rank + 1) + ":0");
  }
  return MakeGrpcWorld(addresses, {.over_network = true});
}

World MakeSharedMemoryWorld(int world_size) {
  return MakeGrpcWorld(std::vector<std::string>(world_size, "127.0.0.1:0"), {},
                       std::vector<std::string>(world_size, SharedMemoryKey()));
}

World MakeTwoHostWorld(int world_size) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < world_size; ++rank) {
    hosts.push_back(rank % 2 == 0 ? SharedMemoryKey() : "another");
  }
  return MakeGrpcWorld(std::vector<std::string>(world_size, "127.0.0.1:0"), {}, hosts);
}

std::vector<WorldKind> AllWorldKinds() {
  return {{"in_process", MakeInProcessWorld},
          {"tcp", MakeTcpWorld},
          {"network", MakeNetworkWorld},
          {"unix_socket", MakeUnixWorld},
          {"shared_memory", MakeSharedMemoryWorld},
          {"two_hosts", MakeTwoHostWorld},
          {"mpi", MakeLoopbackMpiWorld},
          {"mpi_two_hosts", MakeTwoHostMpiWorld}};
}

std::vector<WorldKind> TolerantWorldKinds() {
  std::vector<WorldKind> kinds = AllWorldKinds();
  std::erase_if(kinds, [](const WorldKind& kind) { return kind.name.starts_with("mpi"); });
  return kinds;
}

Deadline TestDeadline() { return std::chrono::steady_clock::now() + std::chrono::minutes(5); }

std::vector<Status> Await(CompletionQueue* queue, size_t n) {
  std::vector<Status> by_id(n);
  for (size_t i = 0; i < n; ++i) {
    Completion completion;
    RT_CHECK(queue->Next(&completion, TestDeadline()), "operations complete");
    RT_CHECK(completion.id < n, "ids are 0 to n - 1 here");
    by_id[completion.id] = std::move(completion.status);
  }
  return by_id;
}

void OnEveryRank(int world_size, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(body, rank);
}

std::vector<std::byte> PatternBytes(size_t bytes, uint64_t seed) {
  std::vector<std::byte> pattern(bytes);
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (std::byte& byte : pattern) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return pattern;
}

}  // namespace ringtail
