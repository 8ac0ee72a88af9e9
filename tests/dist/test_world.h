// Worlds for the tests of dist/: every kind of transport, with threads of this process as ranks.
#ifndef RINGTAIL_TESTS_DIST_TEST_WORLD_H_
#define RINGTAIL_TESTS_DIST_TEST_WORLD_H_

#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "dist/transport/transport.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

using World = std::vector<std::unique_ptr<Transport>>;  // by rank

struct WorldKind {
  std::string name;
  std::function<World(int world_size)> make;
};
void PrintTo(const WorldKind& kind, std::ostream* out);

// Over gRPC, with a listener for each address.
World MakeGrpcWorld(const std::vector<std::string>& listen_at, const TransportOptions& options,
                    const std::vector<std::string>& hosts = {});
World MakeTcpWorld(int world_size);   // loopback
World MakeUnixWorld(int world_size);  // sockets in a temporary folder, two threads each
World MakeSharedMemoryWorld(int world_size);
World MakeTwoHostWorld(int world_size);  // even ranks share memory, odd ranks share memory

// All of them; the same tests hold for each.
std::vector<WorldKind> AllWorldKinds();
// Those whose ranks can outlive one another.
std::vector<WorldKind> TolerantWorldKinds();

// Long enough for any load; only a hang takes as long.
Deadline TestDeadline();

// The next `n` completions, by id. Ends the test process if they do not come.
std::vector<Status> Await(CompletionQueue* queue, size_t n);

// Runs `body(rank)` on a thread per rank, and waits for all.
void OnEveryRank(int world_size, const std::function<void(int rank)>& body);

// Bytes that tell the message: a mix of `seed` and the position.
std::vector<std::byte> PatternBytes(size_t bytes, uint64_t seed);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TEST_WORLD_H_
